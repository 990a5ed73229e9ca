package materialize

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/tables"
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
	return defined.Registry(t, text)
}

// text is an input file; the ending of its name gives the format.
type text struct{ stream, name, content string }

// making is a training set made from texts.
type making struct {
	*features.Registry
	inputs         []text
	logs           []*testLog // instead of inputs
	maxRecordBytes int
	until, began   int64
	stream, spine  string // the spine is a CSV
	service        string
	names          []string
	quality        bool
	asServed       bool
	recordTime     string
	excludeCurrent bool
	whole          bool // the output has the time and the keys of events
	decimals       Decimals
	memory         int64
	parquet        *bytes.Buffer // the output unless it is CSV
	rowGroup       int           // bytes of a row group
	tables         *tables.Set
}

// selected adds the streams and the columns to a replay.
func (m *making) selected(r *Replay) error {
	s := Selection{Registry: m.Registry, Service: m.service, Names: m.names, Quality: m.quality, Lists: m.parquet != nil, ExcludeCurrent: m.excludeCurrent}
	if m.spine != "" {
		table, err := source.NewCSV("spine.csv", strings.NewReader(m.spine))
		if err != nil {
			return err
		}
		if s.Spine, err = NewSpine(table, "at"); err != nil {
			return err
		}
	} else {
		s.Stream, _ = m.Stream(m.stream)
	}
	for _, in := range r.Inputs {
		s.Inputs = append(s.Inputs, in.Stream)
		if in.Stream == nil {
			s.Inputs = m.Streams
		}
	}
	var err error
	if r.Columns, err = s.Columns(); !m.whole {
		r.Columns = slices.DeleteFunc(r.Columns, func(c Column) bool { return c.of == eventTime || c.of == ofEvent && !slices.Contains(m.names, c.Name) })
	}
	r.Stream, r.Spine = s.Stream, s.Spine
	return err
}

func (m making) run(t testing.TB) (string, Summary, error) {
	t.Helper()
	replay := Replay{
		Registry: m.Registry, NewState: func() State { return memory.New() }, Cores: 3, block: 30, partSize: 50, AsServed: m.asServed, RecordTime: m.recordTime,
		ExcludeCurrent: m.excludeCurrent, Memory: max(m.memory, 1), MaxRecordBytes: m.maxRecordBytes, Until: m.until, Began: m.began, Seal: defined.Seal(),
	}
	if m.tables != nil {
		replay.Tables = m.tables
	}
	for _, log := range m.logs {
		replay.Inputs = append(replay.Inputs, log.input())
	}
	for _, in := range m.inputs {
		stream, _ := m.Stream(in.stream)
		replay.Inputs = append(replay.Inputs, Input{Name: in.name, Stream: stream, Open: func(s *record.Stream) (source.Source, error) {
			if strings.HasSuffix(in.name, ".ndjson") {
				return source.NewEvents(in.name, strings.NewReader(in.content)), nil
			}
			table, err := source.NewCSV(in.name, strings.NewReader(in.content))
			if err != nil {
				return nil, err
			}
			return source.EventsOf(table, s)
		}})
	}
	if err := m.selected(&replay); err != nil {
		return "", Summary{}, err
	}
	var out strings.Builder
	summary, err := replay.Run(context.Background(), func(columns []Column) (Writer, error) {
		if m.parquet == nil {
			return NewCSVWriter(&out, columns)
		}
		w, err := NewParquetWriter(m.parquet, columns, cmp.Or(m.decimals, NativeDecimals))
		w.(*parquetWriter).most = max(m.rowGroup, 1)
		return w, err
	})
	return out.String(), summary, err
}

// materialize makes a training set of a stream's events from a text in a format, and returns the
// output.
func materialize(t *testing.T, r *features.Registry, stream, format, input string, names ...string) (string, Summary, error) {
	t.Helper()
	return making{Registry: r, inputs: []text{{stream, "in." + format, input}}, stream: stream, names: names}.run(t)
}

const header = "at,kind.name,meta.id,who.user,who.device,amount,score,n,ok,seen,where.lat,where.lon,note\n"

// Buckets have the types of their fields; empty buckets, and objects that hold only empty ones, are
// null. Each row includes its own event.
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
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
	// The log holds two events of three, and three features read it.
	if summary.Rows != 4 || summary.Events != 4 || summary.Passed != 1 || summary.Capped != 3 {
		t.Errorf("the summary is %+v, want 4 rows, 4 events, 1 passed and 3 capped", summary)
	}
	got, _, err = materialize(t, load(t, definitions), "pay", "csv", in, "big", "user", "seen", "place", "ok", "n", "paid", "amount")
	want = `meta.id,big,user,seen,place,ok,n,paid,amount
007,false,"o""k, \x",1700000000000,"1,2",true,1,1.1,1.1
9,true,"o""k, \x",1700000000000,,false,,201.1,200
10,,,,,,,,
"a
b",,"o""k, \x",,,,,200,
`
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// A line holds the value of a record; an ID may be a number.
func TestLines(t *testing.T) {
	in := `{"at":"2026-01-31 10:00:00","kind":{"name":"pay"},"meta":{"id":1},"who":{"user":"","device":"d"},"amount":"1.5"}` + "\n\n" +
		`{"at":"2026-01-31 11:00:00","kind":{"name":"pay"},"meta":{"id":"x\ty"},"who":{"user":"","device":"d"},"amount":2}`
	got, summary, err := materialize(t, load(t, definitions), "pay", "ndjson", in, "paid", "both")
	if want := "meta.id,paid,both\n1,1.5,1\nx\ty,2,2\n"; err != nil || got != want || summary.Events != 2 {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// SEEN asks about the event's own value without the event itself, unless that counts: false means a first time, null
// means no value. Events of the file count in its order.
func TestFirstTimes(t *testing.T) {
	r := load(t, `
streams:
  view: {topic: views, timestamp: at, id: id, fields: {user: string, page: string, ok: bool}}
features:
  known:   SEEN(1h, view, user, page)
  known_ok: SEEN(lifetime, view, user, page, where=ok)
  exactly: SEEN(10s, view, user, page, tile=exact)
  apart:   SEEN(10s, view, user, page, tile=exact, exclude=current)
  now_ok:  SEEN(lifetime, view, user, page, where=ok, current=counted)
  views:   COUNT(1h, view, user)
`)
	in := "id,at,user,page,ok\n" +
		"1,1700000000000,u,a,true\n2,1700000001000,u,a,false\n3,1700000002000,u,b,false\n4,1700000003000,u,b,true\n5,1700000004000,v,a,true\n" +
		"6,1700000005000,u,,true\n7,1700000006000,,a,true\n8,1700000011000,u,a,true\n9,1700000021000,u,a,true\n10,1700007200000,u,a,false\n" +
		"11,1700007200000,u,a,\n"
	want := `id,apart,exactly,known,known_ok,now_ok,views
1,false,false,false,false,true,1
2,true,true,true,true,true,2
3,false,false,false,false,false,3
4,true,true,true,false,true,4
5,false,false,false,false,true,1
6,,,,,,5
7,,,,,,
8,false,false,true,true,true,6
9,false,false,true,true,true,7
10,false,false,false,true,true,1
11,true,true,true,true,true,2
`
	got, _, err := materialize(t, r, "view", "csv", in)
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

func TestBadInput(t *testing.T) {
	const notDecimal = "in.csv:2: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one"
	row := func(cells string) string { return header + "2026-01-31 10:00:00,pay," + cells + "\n" }
	line := func(members string) string {
		return "\n" + `{"at":"2026-01-31 10:00:00","kind":{"name":"pay"},"meta":{"id":1}` + members + "}\n"
	}
	for _, c := range []struct{ format, in, want string }{
		{"csv", "", "in.csv:1: the file is empty; its first line must name the columns"},
		{"csv", "a,a\n", `in.csv:1: column "a" is repeated`},
		{"csv", strings.Replace(header, "amount", "amuont", 1), `in.csv:1: field amount of pay: unknown column "amount"; did you mean "amuont"?`},
		{"csv", "kind.name,meta.id,who.user,who.device,amount,score,n,ok,seen,where.lat\n", "in.csv:1: the timestamp of pay: unknown column \"at\"; known: " +
			"amount, kind.name, meta.id, n, ok, score, seen, where.lat, who.device, who.user\n" +
			`field place of pay: unknown column "where.lon"; did you mean "where.lat"?`},
		{"csv", header + "a,b\n", "in.csv:2: wrong number of fields"},
		{"csv", row("1,u,d,1,1,1,true,0,1,2,\"a\nb\"") + "\"x\n\n", "in.csv:4: extraneous or missing \" in quoted-field"},
		{"csv", row("1,u,d,\"1,5\",,,,,,,"), notDecimal},
		{"csv", row("1,u,d,NaN,,,,,,,"), notDecimal},
		{"csv", row("1,u,d,1 ,,,,,,,"), notDecimal},
		{"csv", row("1,u,d,1.234,,,,,,,"), "in.csv:2: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found 1.234, which `round: true` rounds"},
		{"csv", row("1,u,d,,,,yes,,,,"), "in.csv:2: stream pay: ok: expected a bool, found a string"},
		{"csv", row("1,u,d,,,,,today,,,"), "in.csv:2: stream pay: seen: expected a timestamp (milliseconds since 1970, or RFC 3339), found a string"},
		{"csv", row("1,u,d,,,,,,1,,"), `in.csv:2: stream pay: where: expected a location ({"lat": -90 to 90, "lon": -180 to 180}), found an object without one of these: if they have other names, or may both be null, give their paths as ` + "`" + `lat` + "`" + ` and ` + "`" + `lon` + "`" + ` of the field`},
		{"csv", row("1,\xff,d,,,,,,,,"), "in.csv:2: stream pay: who.user: the string is not valid UTF-8"},
		{"csv", strings.Replace(row("1,u,d,,,,,,,,"), ",pay,", ",login,", 1), `in.csv: none of its 1 events belongs to stream pay, which takes events with match kind.name != "login"`},
		{"csv", header, "no event is of stream pay, so there are no rows"},
		{"csv", row(",u,d,,,,,,,,"), "in.csv:2: stream pay: meta.id: the event has no id"},
		{"csv", header + ",pay,1,u,d,,,,,,,,\n", "in.csv:2: stream pay: at: the event has no timestamp"},
		{"csv", header + "31.1.2026,pay,1,u,d,,,,,,,,\n", "in.csv:2: stream pay: at: expected a timestamp of the years 1 to 9999 (date and time in UTC, such as 2026-01-31 23:59:59.999), found a string"},
		{"ndjson", "\n{\n", "in.ndjson:2: stream pay: malformed JSON at byte 1 of 1 (an object must be on one line: jq -c . makes such lines, of a list with jq -c '.[]')"},
		{"ndjson", line(`,"n":1.5`), "in.ndjson:2: stream pay: n: expected a 64-bit integer, found 1.5"},
		{"ndjson", strings.Replace(line(""), `"id":1`, `"id":true`, 1), "in.ndjson:2: stream pay: meta.id: expected a string or a number, found a bool"},
	} {
		_, _, err := materialize(t, load(t, definitions), "pay", c.format, c.in)
		if fmt.Sprint(err) != c.want {
			t.Errorf("%.200q\ngot  %v\nwant %s", c.in, err, c.want)
		}
	}
}

// Values by category are an object in one cell, sorted by name, as in the answer to a question; the
// cell is empty without an entity.
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
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// An empty text is a value like any other, and so is a zero, also where an entity has nothing else.
func TestEmptyTextsAndZeros(t *testing.T) {
	r := load(t, `
streams: {s: {topic: t, timestamp: at, id: id, fields: {user: string, name: string, rate: float}}}
features:
  distinct:  COUNT_DISTINCT(1h, s, user, name)
  estimated: COUNT_DISTINCT(1h, s, user, name, method=hll)
  last_seen: COUNT_DISTINCT(1h, s, user, name, method=last_seen)
  logged:    COUNT_DISTINCT(1h, s, user, name, tile=exact)
  mode:      MODE(1h, s, name, user)
  least:     MIN(1h, s, name, user)
  entropy:   ENTROPY(1h, s, name, user)
  per:       COUNT(1h, s, user, per=name)
  median:    QUANTILE(1h, s, rate, user, p=0.5)
`)
	names := []string{"distinct", "estimated", "last_seen", "logged", "mode", "least", "entropy", "per", "median"}
	got, _, err := materialize(t, r, "s", "ndjson", `
{"at":1700000000000,"id":"1","user":"u","name":"","rate":0}
{"at":1700000000001,"id":"2","user":"u","name":""}
{"at":1700000000002,"id":"3","user":"v","name":null,"rate":0}
`[1:], names...)
	want := `id,distinct,estimated,last_seen,logged,mode,least,entropy,per,median
1,1,1,1,1,"","",0,"{"""":1}",0
2,1,1,1,1,"","",0,"{"""":2}",0
3,0,0,0,0,,,,{},0
`
	if err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

func TestBadColumns(t *testing.T) {
	for _, c := range []struct{ stream, columns, want string }{
		{"login", "", "stream login has no id, which identifies the events of a training set; add id: PATH to it"},
		{"pay", "payd", `unknown feature or field "payd" of stream pay; did you mean "paid"?`},
		{"pay", "logins", `feature "logins" reads events of stream login, which has no input; add --input login=FILE`},
		{"pay", "mixed", `feature "mixed" reads events of stream login, which has no input; add --input login=FILE`},
		{"pay", "hops", `feature "hops" reads events of stream login, which has no input; add --input login=FILE`},
		{"pay", "devices", `feature "devices" is a list, which a CSV cell cannot hold; write a .parquet file`},
		{"pay", "n,n", `column "n" is repeated`},
	} {
		_, _, err := materialize(t, load(t, definitions), c.stream, "csv", header, strings.FieldsFunc(c.columns, func(r rune) bool { return r == ',' })...)
		if fmt.Sprint(err) != c.want {
			t.Errorf("columns %s, stream %s\ngot  %v\nwant %s", c.columns, c.stream, err, c.want)
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
    fields: {user: string, device: string, amount: decimal, score: float, place: string}
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
  quantile: QUANTILE(1d, pay, score, user, p=0.3)
  places: COUNT_DISTINCT(1d, pay, user, place)
  place_of: MODE(1d, pay, place, user)
  mix: ENTROPY(1d, pay, place, user)
  least_place: MIN(1d, pay, place, user)
  last_place: LAST(1d, pay, place, user)
  exact_places: COUNT_DISTINCT(1d, pay, user, place, tile=exact)
  recent_places: COUNT_DISTINCT(1d, pay, user, place, method=last_seen)
  near_places: APPROX_COUNT_DISTINCT(1d, pay, user, place)
  spread: VAR_POP(1d, pay, amount, user)
  through: COUNT_DISTINCT(1d, pay, SET(2h, pay, user, device), user, max=2)
  through_exact: SUM(2h, pay, amount, SET(1d, pay, device, user), tile=exact, where='score > 0.5')
`

// byPlace is one more of randomDefinitions, whose values are not scalars.
const byPlace = "  by_place: SUM(1d, pay, amount, user, per=place)\n"

// randomEvents returns events of randomDefinitions, as lines and decoded. Some are out of order, some lack fields, and
// many have empty, zero, equal or extreme values.
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
			"amount": json.Number(pick(random, fmt.Sprintf("%d.%02d", random.IntN(100), random.IntN(100)), "0", "-0.00", "7.5", "-9000000000000")),
			"score":  json.Number(pick(random, fmt.Sprint(random.Float64()), "0.0", "-0.0", "5e-324", "0.5", "1e300")),
			"place":  pick(random, fmt.Sprint("p", random.IntN(4)), "", "|", "\x00", strings.Repeat("long", 60)),
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

// pick returns an ordinary value half of the time, and else one of those at the edges.
func pick(random *rand.Rand, ordinary string, edges ...string) string {
	if i := random.IntN(2 * len(edges)); i < len(edges) {
		return edges[i]
	}
	return ordinary
}

// near reports whether two values are equal except for a relative error.
func near(a, b string, relative float64) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return a == b || err1 == nil && err2 == nil && math.Abs(x-y) <= relative*math.Abs(y)
}
