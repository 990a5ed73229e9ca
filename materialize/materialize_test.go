package materialize

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

const definitions = `
streams:
  pay:
    topic: events
    match: kind.name != "login"
    timestamp: {path: at, unit: datetime}
    id: meta.id
    fields:
      user: {type: string, path: who.user}
      device: {type: string, path: who.device}
      amount: {type: decimal, scale: 2}
      score: float
      n: int
      ok: bool
      seen: timestamp
      place: {type: location, path: where}
      big: {type: bool, expr: amount > 100}
  login:
    topic: events
    match: kind.name == "login"
    timestamp: at
    fields: {user: string}
features:
  paid:     SUM(1h, pay, amount, user, tile=exact, max=2)
  best:     MAX(1h, pay, score, user, tile=exact, max=2)
  both:     COUNT(lifetime, pay, user, device)
  share:    {expr: paid / both, default: -1}
  logins:   COUNT(1h, login, user)
  mixed:    {expr: paid / logins}
  hops:     COUNT(1h, pay, SET(1h, login, user, user))
  devices:  SET(1h, pay, user, device, max=2, tile=exact)
  by_device: COUNT(1h, pay, user, per=device)
`

func load(t testing.TB, text string) *features.Registry {
	t.Helper()
	r, err := definition.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// materialize replays a text, a CSV or lines, and returns what was written.
func materialize(t *testing.T, r *features.Registry, stream, format, input string, names ...string) (string, Summary, error) {
	t.Helper()
	s, ok := r.Stream(stream)
	if !ok {
		t.Fatal("no stream", stream)
	}
	columns, err := Columns(r, s, names, false)
	if err != nil {
		return "", Summary{}, err
	}
	source := NewLines("in.ndjson", strings.NewReader(input))
	if format == "csv" {
		if source, err = NewCSV("in.csv", strings.NewReader(input), s); err != nil {
			return "", Summary{}, err
		}
	}
	var out strings.Builder
	replay := Replay{Registry: r, Stream: s, Columns: columns, State: memory.New()}
	w, err := NewCSVWriter(&out, s, columns)
	if err != nil {
		t.Fatal(err)
	}
	summary, err := replay.Run(context.Background(), source, w)
	return out.String(), summary, err
}

const header = "at,kind.name,meta.id,who.user,who.device,amount,score,n,ok,seen,where.lat,where.lon,note\n"

// Buckets have the types of their fields; empty ones, and objects of empty ones
// only, are null. Each row holds its own event's share.
func TestCSV(t *testing.T) {
	in := "\ufeff" + header +
		"2026-01-31 10:00:00,pay,007,\"o\"\"k, \\x\",d1,1.10,0.5,1.0,True,1700000000000,1,2,any\n" +
		"2026-01-31 10:00:01,login,8,u,,,,,,,,,\n" +
		"2026-01-31 10:00:02.5,pay,9,\"o\"\"k, \\x\",,200,,,0,2023-11-14T22:13:20Z,,,\n" +
		"2026-01-31 10:00:03,pay,10,,d1,,2,,,,,,\n" +
		"2026-01-31 10:00:04,pay,\"a\nb\",\"o\"\"k, \\x\",d1,,1e0,,,,,,\n"
	got, summary, err := materialize(t, load(t, definitions), "pay", "csv", in)
	want := `meta.id,best,both,by_device,paid,share
007,0.5,1,"{""d1"":1}",1.1,1.1
9,0.5,,"{""d1"":1}",201.1,
10,,,,,
"a
b",1,2,"{""d1"":2}",200,100
`
	if err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
	// The log holds two events, and there were three in the end: three features
	// look at it.
	if want := (Summary{Events: 4, Passed: 1, Capped: 3}); summary != want {
		t.Errorf("%+v; want %+v", summary, want)
	}
	got, _, err = materialize(t, load(t, definitions), "pay", "csv", in, "big", "user", "seen", "place", "ok", "n", "paid", "amount")
	want = `meta.id,big,user,seen,place,ok,n,paid,amount
007,false,"o""k, \x",1700000000000,"1,2",true,1,1.1,1.1
9,true,"o""k, \x",1700000000000,,false,,201.1,200
10,false,,,,,,,
"a
b",false,"o""k, \x",,,,,200,
`
	if err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

// Lines are what the topic has; an id may be a number.
func TestLines(t *testing.T) {
	in := `{"at":"2026-01-31 10:00:00","kind":{"name":"pay"},"meta":{"id":1},"who":{"user":"","device":"d"},"amount":"1.5"}` + "\n\n" +
		`{"at":"2026-01-31 11:00:00","kind":{"name":"pay"},"meta":{"id":"x\ty"},"who":{"user":"","device":"d"},"amount":2}`
	got, summary, err := materialize(t, load(t, definitions), "pay", "ndjson", in, "paid", "both")
	if want := "meta.id,paid,both\n1,1.5,1\nx\ty,2,2\n"; err != nil || got != want || summary.Events != 2 {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

// Seen is asked about the event's own value, and the event is not counted:
// false is a first time, and null that there is no value. Events of the file
// count in its order.
func TestFirstTimes(t *testing.T) {
	r := load(t, `
streams:
  view: {topic: views, timestamp: at, id: id, fields: {user: string, page: string, ok: bool}}
features:
  known:   SEEN(1h, view, user, page)
  known_ok: SEEN(lifetime, view, user, page, where=ok)
  exactly: SEEN(10s, view, user, page, tile=exact)
  views:   COUNT(1h, view, user)
`)
	in := "id,at,user,page,ok\n" +
		"1,1700000000000,u,a,true\n2,1700000001000,u,a,false\n3,1700000002000,u,b,false\n4,1700000003000,u,b,true\n5,1700000004000,v,a,true\n" +
		"6,1700000005000,u,,true\n7,1700000006000,,a,true\n8,1700000011000,u,a,true\n9,1700000021000,u,a,true\n10,1700007200000,u,a,false\n" +
		"11,1700007200000,u,a,\n"
	want := `id,exactly,known,known_ok,views
1,false,false,false,1
2,true,true,true,2
3,false,false,false,3
4,true,true,false,4
5,false,false,false,1
6,,,,5
7,,,,
8,false,true,true,6
9,false,true,true,7
10,false,false,true,1
11,true,true,true,2
`
	got, _, err := materialize(t, r, "view", "csv", in)
	if err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestBadInput(t *testing.T) {
	row := func(cells string) string { return header + "2026-01-31 10:00:00,pay," + cells + "\n" }
	line := func(members string) string {
		return "\n" + `{"at":"2026-01-31 10:00:00","kind":{"name":"pay"},"meta":{"id":1}` + members + "}\n"
	}
	for _, c := range []struct{ format, in, want string }{
		{"csv", "", "in.csv:1: the file is empty; its first line must name the columns"},
		{"csv", "a,a\n", `in.csv:1: column "a" is there twice`},
		{"csv", strings.Replace(header, "amount", "amuont", 1), `in.csv:1: field amount of stream pay: unknown column "amount"; did you mean "amuont"?`},
		{"csv", "kind.name,meta.id,who.user,who.device,amount,score,n,ok,seen,where.lat\n", "in.csv:1: the timestamp of stream pay: unknown column \"at\"; known: " +
			"amount, kind.name, meta.id, n, ok, score, seen, where.lat, who.device, who.user\n" +
			`field place of stream pay: unknown column "where.lon"; did you mean "where.lat"?`},
		{"csv", header + "a,b\n", "in.csv:2: wrong number of fields"},
		{"csv", row("1,u,d,1,1,1,true,0,1,2,\"a\nb\"") + "\"x\n\n", "in.csv:4: extraneous or missing \" in quoted-field"},
		{"csv", row("1,u,d,\"1,5\",,,,,,,"), `in.csv:2: column amount: expected a number, found "1,5"`},
		{"csv", row("1,u,d,NaN,,,,,,,"), `in.csv:2: column amount: expected a number, found "NaN"`},
		{"csv", row("1,u,d,1 ,,,,,,,"), `in.csv:2: column amount: expected a number, found "1 "`},
		{"csv", row("1,u,d,1.234,,,,,,,"), "in.csv:2: stream pay: amount: expected a decimal of 64 bits with at most 2 digits behind the point, found 1.234"},
		{"csv", row("1,u,d,,,,yes,,,,"), `in.csv:2: column ok: expected true or false, found "yes"`},
		{"csv", row("1,u,d,,,,,today,,,"), "in.csv:2: stream pay: seen: expected a timestamp (milliseconds since 1970, or RFC 3339), found a string"},
		{"csv", row("1,u,d,,,,,,1,,"), `in.csv:2: stream pay: where: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an object`},
		{"csv", row("1,\xff,d,,,,,,,,"), "in.csv:2: stream pay: who.user: the string is not valid UTF-8"},
		{"csv", row(",u,d,,,,,,,,"), "in.csv:2: stream pay: meta.id: the event has no id"},
		{"csv", header + ",pay,1,u,d,,,,,,,,\n", "in.csv:2: stream pay: at: the event has no timestamp"},
		{"csv", header + "31.1.2026,pay,1,u,d,,,,,,,,\n", "in.csv:2: stream pay: at: expected a date and time in UTC such as 2026-01-31 23:59:59.999"},
		{"csv", row("1,u,d,,,,,,,,") + "2026-01-31 08:59:59,pay,1,u,d,,,,,,,,\n",
			"in.csv:3: the event is 1h0m1s older than one before it, and some feature keeps its past for 1h0m0s only: sort the file by time, or raise keep"},
		{"ndjson", "\n{\n", "in.ndjson:2: stream pay: malformed JSON at byte 1 of 1"},
		{"ndjson", line(`,"n":1.5`), "in.ndjson:2: stream pay: n: expected an integer of 64 bits, found 1.5"},
		{"ndjson", strings.Replace(line(""), `"id":1`, `"id":true`, 1), "in.ndjson:2: stream pay: meta.id: expected a string or a number, found a bool"},
		{"ndjson", strings.Repeat("x", maxLine+1), "in.ndjson:1: the line has more than 67108864 bytes"},
	} {
		_, _, err := materialize(t, load(t, definitions), "pay", c.format, c.in)
		if fmt.Sprint(err) != c.want {
			t.Errorf("%.200q\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

// Values by category are an object in one cell, in the order of their names:
// as a question answers, with nothing where there is no entity.
func TestValuesByCategoryInCSV(t *testing.T) {
	r := load(t, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {user: string, shop: string, no: int, rate: float, name: string}}}
features:
  rates: SUM(1h, s, rate, user, per=shop)
  names: LAST(1h, s, name, user, per=no)
  great: COUNT(1h, s, user, per=shop, where='rate > 100')
`)
	got, _, err := materialize(t, r, "s", "ndjson", `
{"at":1700000000000,"id":"1","user":"u","shop":"z","no":10,"rate":0.5,"name":"a,\"b\""}
{"at":1700000000001,"id":"2","user":"u","shop":"\"y\"","no":9,"rate":1.25}
{"at":1700000000002,"id":"3","shop":"z","no":1,"rate":1}
{"at":1700000000003,"id":"4","user":"u","shop":"z","no":9,"rate":101,"name":"é"}
`[1:], "rates", "names", "great")
	want := `id,rates,names,great
1,"{""z"":0.5}","{""10"":""a,\""b\""""}",{}
2,"{""\""y\"""":1.25,""z"":0.5}","{""10"":""a,\""b\""""}",{}
3,,,
4,"{""\""y\"""":1.25,""z"":101.5}","{""10"":""a,\""b\"""",""9"":""é""}","{""z"":1}"
`
	if err != nil || got != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, got, want)
	}
}

func TestBadColumns(t *testing.T) {
	for _, c := range []struct{ stream, columns, want string }{
		{"login", "", "stream login names no id, by which the events of a training set are known; add id: PATH to it"},
		{"pay", "payd", `unknown feature or field "payd" of stream pay; did you mean "paid"?`},
		{"pay", "logins", `feature "logins" counts events of stream login, and these are of pay`},
		{"pay", "mixed", `feature "mixed" counts events of stream login, and these are of pay`},
		{"pay", "hops", `feature "hops" counts events of stream login, and these are of pay`},
		{"pay", "devices", `feature "devices" answers with a list, which a cell of a CSV cannot hold; write a .parquet`},
		{"pay", "n,n", `column "n" is there twice; the first is always meta.id, the id`},
	} {
		_, _, err := materialize(t, load(t, definitions), c.stream, "csv", header, strings.FieldsFunc(c.columns, func(r rune) bool { return r == ',' })...)
		if fmt.Sprint(err) != c.want {
			t.Errorf("%s of %s\ngot  %v\nwant %s", c.columns, c.stream, err, c.want)
		}
	}
	nested := load(t, `
streams: {s: {topic: t, timestamp: at, id: a, fields: {x: {type: int, path: a.b}}}}
features: {}
`)
	_, _, err := materialize(t, nested, "s", "csv", "at,a,a.b\n")
	if want := `in.csv:1: column "a" is the path of a value, and of others below it`; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

const randomDefinitions = `
streams:
  pay:
    topic: events
    timestamp: at
    id: id
    fields: {user: string, device: string, amount: decimal, score: float}
features:
  count_1h: COUNT(1h, pay, user)
  sum_1d: SUM(1d, pay, amount, user, where='score > 0.5')
  sum_float: SUM(lifetime, pay, score, device)
  avg_1h: AVG(1h, pay, amount, user, device)
  min_1h: MIN(1h, pay, score, user)
  max_1h: MAX(1h, pay, amount, user, delay=10m)
  devices_1h: COUNT_DISTINCT(1h, pay, user, device)
  recent_1h: COUNT_DISTINCT(1h, pay, user, device, method=last_seen, max=3)
  near_1h: APPROX_COUNT_DISTINCT(1h, pay, user, device)
  exact_count: COUNT(50m, pay, user, tile=exact, bounds='[]')
  exact_avg: AVG(2h, pay, score, device, tile=exact, delay=1h)
  exact_sum: SUM(1d, pay, amount, user, tile=exact, max=5, where='score > 0.5')
  today: SUM(calendar day tz Asia/Shanghai, pay, amount, user)
  five_minutes: COUNT(tumbling 5m, pay, device)
  from_first: COUNT(fixed 20m, pay, user, where='score > 0.5')
  in_session: AVG(session 10m, pay, score, user)
  last_three: SUM(last 3, pay, amount, device)
  before: LAST(rolling 1d last 5, pay, device, user, exclude=current)
  derived: {expr: exact_sum / count_1h, default: 7}
  through: COUNT_DISTINCT(1d, pay, SET(2h, pay, user, device), user, max=2)
  through_exact: SUM(2h, pay, amount, SET(1d, pay, device, user), tile=exact, where='score > 0.5')
`

// randomEvents are events of randomDefinitions, some out of order and some
// without some of their fields, as lines and as they are.
func randomEvents(t *testing.T) (in string, events []map[string]any) {
	t.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var lines strings.Builder
	now := int64(1_700_000_000_000)
	for i := range 1500 {
		now += random.Int64N(300_000)
		e := map[string]any{"at": now - random.Int64N(60_000), "id": i}
		for name, value := range map[string]any{
			"user": fmt.Sprint("u", random.IntN(4)), "device": fmt.Sprint("d", random.IntN(6)),
			"amount": float64(random.IntN(10_000)) / 100, "score": random.Float64(),
		} {
			if random.IntN(20) > 0 {
				e[name] = value
			}
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(text, '\n'))
		events = append(events, e)
	}
	return lines.String(), events
}

// Every value of every row is what a plain loop over the events until then
// gives, for all kinds and windows, though some events come out of order.
func TestReplayEqualsModel(t *testing.T) {
	r := load(t, randomDefinitions)
	plain := model.New(r)
	in, events := randomEvents(t)
	got, summary, err := materialize(t, r, "pay", "ndjson", in)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(got)).ReadAll()
	if err != nil || len(rows) != len(events)+1 {
		t.Fatal(len(rows), err)
	}
	lines := strings.Split(in, "\n")
	compared, capped, uncertain := 0, 0, 0
	for i, e := range events {
		err := plain.Apply(record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: -1, Value: []byte(lines[i])})
		if err != nil {
			t.Fatal(err)
		}
		for column, name := range rows[0][1:] {
			name, isUncertain := strings.CutSuffix(name, "_uncertain")
			f, _ := r.Feature(name)
			var keys []string
			for _, key := range []string{"device", "user"} { // sorted
				if value, ok := e[key]; ok && strings.Contains(strings.Join(f.By, " "), key) {
					keys = append(keys, value.(string))
				}
			}
			want := ""
			if len(keys) == len(f.By) {
				answer := plain.Answer(f, strings.Join(keys, "|"), e["at"].(int64))
				want = string(answer.Value.AppendText(nil))
				switch {
				case isUncertain:
					want = strconv.FormatInt(answer.Uncertain, 10)
				case answer.Uncertain > 0:
					uncertain++
				}
				if answer.Capped && !isUncertain {
					capped++
				}
			}
			compared++
			if value := rows[i+1][column+1]; !near(value, want) {
				t.Fatalf("event %d, %s: %s is %q, want %q", i, lines[i], name, value, want)
			}
		}
	}
	if compared < 15_000 || capped == 0 || capped != summary.Capped || uncertain == 0 || uncertain != summary.Uncertain {
		t.Errorf("%d values compared, %d capped and %d uncertain, and the summary is %+v", compared, capped, uncertain, summary)
	}
}

// A column says how much greater the values of another may be, also in Parquet; no
// other column may have its name.
func TestUncertainColumns(t *testing.T) {
	r := load(t, `
streams: {pay: {topic: events, timestamp: at, id: id, fields: {user: string, device: string, seen_uncertain: string}}}
features:
  seen: COUNT_DISTINCT(1h, pay, user, device, method=last_seen)
  exact: COUNT_DISTINCT(1h, pay, user, device, method=last_seen, tile=exact)
  twice: {expr: seen * 2}
`)
	s, _ := r.Stream("pay")
	columns, err := Columns(r, s, []string{"twice", "exact", "seen"}, false)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range columns {
		names = append(names, c.Name)
		if kind, scale, shape := c.typed(); c.uncertain && (kind != value.Int || scale != 0 || shape != aggregate.Scalar) {
			t.Errorf("%s is of %s", c.Name, kind)
		}
	}
	if want := "[twice twice_uncertain exact seen seen_uncertain]"; fmt.Sprint(names) != want {
		t.Errorf("the columns are %v, want %s", names, want)
	}
	want := `column "seen_uncertain" is there twice; it is also how much greater the values of feature "seen" may be: give the other one another name`
	if _, err := Columns(r, s, []string{"seen_uncertain", "seen"}, false); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// near says whether two values are equal but for the order of a sum.
func near(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && math.Abs(x-y) <= 1e-9*math.Abs(y)
}

// What a cell holds stands in the record as it is, or is refused.
func FuzzCell(f *testing.F) {
	for _, cell := range []string{"", "a", "\"\\\x00", "1.5", "01", "\xff", "true"} {
		f.Add(cell)
	}
	r := load(f, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {x: string, n: float}}}
features: {}
`)
	s, _ := r.Stream("s")
	decoder := r.NewDecoder()
	f.Fuzz(func(t *testing.T, cell string) {
		root, err := newTree(s, []string{"at", "id", "x", "n"})
		if err != nil {
			t.Fatal(err)
		}
		rec, err := root.append(nil, []string{"0", cell, cell, ""})
		if err != nil {
			t.Fatal(err)
		}
		events, err := decoder.Decode(&record.Record{Partition: state.Partition{Topic: "t"}, Timestamp: -1, Value: rec})
		if err == nil && (string(events[0].Values[0].Str) != cell || string(events[0].ID) != cell) {
			t.Errorf("%q became %s, and then %q", cell, rec, events[0].Values[0].Str)
		}
		if err != nil && !strings.Contains(err.Error(), "UTF-8") {
			t.Errorf("%q became %s: %v", cell, rec, err)
		}
		rec, err = root.append(nil, []string{"0", "1", "", cell})
		if err == nil {
			if _, err := decoder.Decode(&record.Record{Partition: state.Partition{Topic: "t"}, Timestamp: -1, Value: rec}); err != nil && !strings.Contains(err.Error(), "64-bit float") {
				t.Errorf("%q became %s: %v", cell, rec, err)
			}
		}
	})
}
