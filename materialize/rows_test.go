package materialize

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

const shop = `
streams:
  pay: {topic: payments, timestamp: at, id: id, match: kind == "pay", fields: {user: string, card: int, shop: int, amount: decimal}}
  login: {topic: logins, timestamp: at, fields: {user: string, ip: string, card: string}}
features:
  paid: SUM(1h, pay, amount, user)
  count: COUNT(1h, pay, user)
  before: COUNT(rolling 1h last 9, pay, user, exclude=current)
  both: {expr: count + before}
  near: APPROX_COUNT_DISTINCT(1h, login, user, ip)
  logins: COUNT(1h, login, user)
  ips: SET(1h, login, user, ip)
  known: SEEN(1h, login, user, ip)
  by_shop: COUNT(1h, pay, shop)
  known_card: SEEN(1h, pay, user, card)
  card_logins: COUNT(1h, login, card)
services:
  risk: [paid, logins]
  lists: [ips]
`

const (
	shopPays = `{"kind":"pay","id":"p1","at":1700000000000,"user":"u","shop":1,"amount":1.5}
{"kind":"other"}
{"kind":"pay","id":"p3","at":1700000002000,"user":"u","shop":1,"amount":3}
{"kind":"pay","id":"p2","at":1700000001000,"user":"u","shop":1,"amount":2}
{"kind":"pay","id":"p4","at":1700000002000,"user":"u","amount":4}
`
	shopLogins = "at,user,ip,card\n1700000002000,u,1.1.1.1,1\n1700000000500,u,1.1.1.1,1\n1700000003000,v,2.2.2.2,1\n"
)

func shopMaking(t *testing.T) making {
	return making{Registry: load(t, shop), stream: "pay", inputs: []text{{"pay", "pay.ndjson", shopPays}, {"login", "login.csv", shopLogins}}}
}

// The rows of a spine include events up to and including their millisecond. Its columns are copied
// unchanged, in the order of the rows' moments.
func TestSpine(t *testing.T) {
	m := shopMaking(t)
	m.spine = "label,at,user,more,shop\n" +
		"1,1700000002000,u,\"a, b\",1\n" +
		"0,2023-11-14T22:13:20.999Z,u,007,\n" +
		",2023-11-14 22:13:22,v,,1\n" +
		"1,1700000002000,,,1\n"
	m.service, m.names = "risk", []string{"by_shop"}
	got, summary, err := m.run(t)
	want := `label,at,user,more,shop,by_shop,paid,logins
0,2023-11-14T22:13:20.999Z,u,007,,,1.5,1
1,1700000002000,u,"a, b",1,3,10.5,2
,2023-11-14 22:13:22,v,,1,3,0,0
1,1700000002000,,,1,3,,
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if summary.Rows != 4 || summary.Events != 7 || summary.Passed != 1 || summary.Found != 7 {
		t.Errorf("the summary is %+v, want 4 rows, 7 events, 1 passed and 7 found", summary)
	}
}

// Lines of JSON are records as in their topic, of formats in JSON with their envelopes; the rows of a table have columns
// for the paths of fields. A tombstone is no event.
func TestRecordsOfFormats(t *testing.T) {
	m := making{Registry: load(t, `
streams:
  change: {topic: changes, format: debezium, timestamp: at, fields: {user: string, op: {type: string, path: __op}}}
  event: {topic: events, format: cloudevents, timestamp: at, fields: {user: string, kind: {type: string, path: ce_type}}}
features:
  changes: COUNT(1h, change, user, per=op)
  kinds: COUNT(1h, event, user, per=kind)
`), inputs: []text{
		{"change", "a.ndjson", `{"op":"c","before":null,"after":{"at":1700000000000,"user":"u"}}` + "\n" + `{"payload":{"op":"d","before":{"at":1700000000000,"user":"u"}}}` + "\n"},
		{"change", "b.csv", "at,user,__op\n1700000000000,u,r\n"},
		{"", "c.ndjson", `{"topic":"events","key":null,"value":{"specversion":"1.0","type":"t","data":{"at":1700000000000,"user":"u"}}}` + "\n" +
			`{"topic":"events","key":"u","value":null}` + "\n" + `{"topic":"changes","key":"u","value":null}` + "\n"},
	}}
	m.spine = "at,user\n1700000001000,u\n"
	got, summary, err := m.run(t)
	want := "at,user,changes,kinds\n1700000001000,u,\"{\"\"c\"\":1,\"\"d\"\":1,\"\"r\"\":1}\",\"{\"\"t\"\":1}\"\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil || summary.Passed != 2 {
		t.Errorf("%d passed, %v (-want +got):\n%s", summary.Passed, err, diff)
	}
	m.inputs[0].content = `{"at":1700000000000,"user":"u"}`
	if _, _, err := m.run(t); err == nil || !strings.Contains(err.Error(), "not a change event of Debezium: its op is nothing") {
		t.Errorf("a row without its envelope gives the error %v", err)
	}
}

// What is nearly an envelope, or a CSV, is refused with the name of what is wrong.
func TestFilesOfOtherKinds(t *testing.T) {
	const noTime = "stream login: at: the event has no timestamp"
	for _, c := range []struct{ stream, name, content, want string }{
		{"login", "a.ndjson", `{"topic":"logins","key":null,"value":{"at":1700000000000,"user":"u"},"extra":1}`,
			noTime + ` (it is no envelope, because of its member "extra": an envelope has topic, key, value and perhaps timestamp, partition, offset and headers)`},
		{"login", "a.ndjson", `{"topic":"logins","partition":0,"offset":7,"tstype":"create","ts":1700000000000,"broker":1,"key":null,"payload":"{\"at\":1700000000000}","at":1700000000000}`,
			`it looks like a line of kcat -J; make an envelope of it with jq -c '{topic, key, value: (.payload | fromjson?), timestamp: .ts}'`},
		{"login", "a.ndjson", `{"topic":"logins","offset":7,"ts":1700000000000,"payload":"{}"}`, noTime +
			` (it looks like a line of kcat -J; make an envelope of it with jq -c '{topic, key, value: (.payload | fromjson?), timestamp: .ts}')`},
		{"login", "a.ndjson", `{"topic":"logins","value":{"at":1700000000000},"timestamp":"2023"}`, noTime + ` (it is no envelope, because its timestamp is no whole number)`},
		{"login", "a.ndjson", "{\n  \"at\": 1700000000000\n}",
			"stream login: malformed JSON at byte 1 of 1 (an object must be on one line: jq -c . makes such lines, of a list with jq -c '.[]')"},
		{"login", "a.ndjson", "[\n  {\"at\": 1700000000000}\n]",
			"stream login: malformed JSON at byte 1 of 1 (an object must be on one line: jq -c . makes such lines, of a list with jq -c '.[]')"},
		{"login", "a.ndjson", `{"at":1700000000000}{"at":1700000000000}`,
			"stream login: malformed JSON at byte 20 of 40 (the line continues after its first object: jq -c . makes lines of both)"},
		{"login", "a.ndjson", "{\"at\":1700000000000}\r{\"at\":1700000000000}\r",
			`stream login: malformed JSON at byte 21 of 41 (its lines end with carriage returns alone: convert them, for example with tr '\r' '\n')`},
		{"", "a.ndjson", `{"topic":"logins","offset":7,"ts":1,"payload":null}`, `expected an envelope {"topic", "key", "value"}; for events without an envelope, name the stream: STREAM=FILE` +
			` (it looks like a line of kcat -J; make an envelope of it with jq -c '{topic, key, value: (.payload | fromjson?), timestamp: .ts}')`},
		{"login", "a.ndjson", `{"topic":"logins","value":{"at":1700000000000}}` + "\n" + `{"topic":"logins","value":{"at":1700000000000},"more":1}`,
			`expected an envelope as on the first line: an object of "topic", "key", "value" and perhaps "timestamp", and nothing else` +
				` (it is no envelope, because of its member "more": an envelope has topic, key, value and perhaps timestamp, partition, offset and headers)`},
		{"login", "a.ndjson", `{"topic":"a subject of its own","user":"u"}`, noTime},
		{"pay", "a.ndjson", `{"topic":"payments","value":{"kind":"pay"},"more":3}`, `none of its 1 events belongs to stream pay, which takes events with match kind == "pay"` +
			` (it is no envelope, because of its member "more": an envelope has topic, key, value and perhaps timestamp, partition, offset and headers)`},
		{"pay", "a.ndjson", `{"topic":"payments","offset":7,"ts":1,"payload":"{}"}`, `none of its 1 events belongs to stream pay, which takes events with match kind == "pay"` +
			` (it looks like a line of kcat -J; make an envelope of it with jq -c '{topic, key, value: (.payload | fromjson?), timestamp: .ts}')`},
		{"login", "a.csv", "at,user,ip,card\r1700000000000,u,1.1.1.1,1\r1700000000000,u,1.1.1.1,1\r", `its lines end with carriage returns alone: convert them, for example with tr '\r' '\n'`},
	} {
		m := making{Registry: load(t, shop), inputs: []text{{c.stream, c.name, c.content}}, spine: "at,user\n1700000001000,u\n"}
		m.names = []string{map[string]string{"": "logins", "login": "logins", "pay": "count"}[c.stream]}
		if _, _, err := m.run(t); err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
			t.Errorf("%s gives the error\n%v, want\n%s", c.content, err, c.want)
		}
	}
}

// What is wrong with a line of one file is not said of another.
func TestHintsAreOfTheirFile(t *testing.T) {
	const good, almost = `{"kind":"pay","id":"a","at":1700000000000,"user":"u"}`, `{"topic":"payments","value":{"kind":"pay"},"more":3}`
	m := making{Registry: load(t, shop), inputs: []text{{"pay", "a.ndjson", almost + "\n" + good}, {"pay", "b.ndjson", `{"kind":"other"}`}}, spine: "at,user\n1700000001000,u\n"}
	m.names = []string{"count"}
	if _, _, err := m.run(t); err == nil || !strings.HasSuffix(err.Error(), `none of its 1 events belongs to stream pay, which takes events with match kind == "pay"`) {
		t.Errorf("got the error %v", err)
	}
}

// Empty quotes in a CSV are an empty text, as on a topic, and nothing is null: in events, in the keys of a spine, and in
// what is written.
func TestEmptyTextsInCSV(t *testing.T) {
	m := making{Registry: load(t, `
streams:
  pay: {topic: payments, timestamp: at, fields: {user: string, device: string, amount: decimal}}
features:
  devices: COUNT_DISTINCT(1h, pay, user, device)
  last: LAST(1h, pay, device, user)
`), inputs: []text{{"pay", "pay.csv", "at,user,device,amount\n1700000000000,u,\"\",1\n1700000000000,u,,1\n1700000000000,u,\\N,1\n1700000000000,\"\",NULL,\n"}}}
	m.spine = "at,user,note\n1700000001000,u,\"\"\n1700000001000,\"\",\n1700000001000,,x\n"
	got, _, err := m.run(t)
	want := "at,user,note,devices,last\n1700000001000,u,\"\",2,\\N\n1700000001000,\"\",,1,NULL\n1700000001000,,x,,\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.inputs[0].content = "at,user,device,amount\n1700000000000,u,d,\"\"\n"
	if _, _, err = m.run(t); err == nil || !strings.Contains(err.Error(), "amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found an empty text") {
		t.Errorf("an empty text as an amount gives the error %v", err)
	}
}

// Rows that are events include events of other streams up to their millisecond, and of their own
// stream those before them. They include themselves unless that is disabled.
func TestEventsAsRows(t *testing.T) {
	m := shopMaking(t)
	m.names = []string{"amount", "count", "before", "logins"}
	got, _, err := m.run(t)
	want := `id,amount,count,before,logins
p1,1.5,1,0,0
p2,2,2,1,1
p3,3,3,2,2
p4,4,4,3,2
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.excludeCurrent = true
	got, _, err = m.run(t)
	want = `id,amount,count,before,logins
p1,1.5,0,0,0
p2,2,1,1,1
p3,3,2,2,2
p4,4,3,3,2
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("without the event itself: error %v (-want +got):\n%s", err, diff)
	}
	m.names = []string{"both"}
	_, _, err = m.run(t)
	if want := `feature "both" leaves the event itself out of some of its windows, and not of others, so there is no value before the event: leave it out of --columns, or leave out --exclude-current`; fmt.Sprint(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	m.names, m.whole = nil, true
	if got, _, err = m.run(t); err != nil || !strings.HasPrefix(got, "id,at,user,shop,before,by_shop,count,known_card,logins,near,paid\n") {
		t.Errorf("all that can be computed before the event: error %v, got\n%s", err, got)
	}
}

// A feature that needs a member reads it from the spine.
func TestSpineNamesMembers(t *testing.T) {
	m := shopMaking(t)
	m.names = []string{"known"}
	m.spine = "ip,at,user\n1.1.1.1,1700000000499,u\n1.1.1.1,1700000000500,u\n2.2.2.2,1700000001000,u\n,1700000001000,u\n"
	got, _, err := m.run(t)
	want := "ip,at,user,known\n1.1.1.1,1700000000499,u,false\n1.1.1.1,1700000000500,u,true\n2.2.2.2,1700000001000,u,false\n,1700000001000,u,\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// The quality of each value is in the columns beside it.
func TestQuality(t *testing.T) {
	m := shopMaking(t)
	m.spine, m.names, m.quality = "at,user\n1700000000000,u\n1700000002000,u\n1700000002000,\n", []string{"near"}, true
	got, _, err := m.run(t)
	want := "at,user,near,near_status,near_capped,near_error\n" +
		"1700000000000,u,0,NOT_FOUND,false,0.0081\n" +
		"1700000002000,u,1,PRESENT,false,0.0081\n" +
		"1700000002000,,,NOT_FOUND,false,0\n"
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// Envelopes hold events of several topics and the record times; events that would be dead letters
// in production are left out.
func TestEnvelopesAsServed(t *testing.T) {
	in := `{"topic":"payments","key":"k","value":{"kind":"pay","id":"p1","at":1700000000000,"user":"u","amount":1},"timestamp":1700000005000}
{"topic":"payments","key":"k","value":{"kind":"pay","id":"p2","at":1700000001000,"user":"u","amount":"x"},"timestamp":1700000001000}
{"topic":"payments","key":"k","value":{"kind":"pay","id":"p3","at":1700990000000,"user":"u","amount":1},"timestamp":1700000001000}
{"topic":"logins","key":"k","value":{"at":1700000002000,"user":"u","ip":"i"},"timestamp":1700000002000}
{"topic":"others","key":"k","value":{},"timestamp":1700000002000}
`
	m := making{Registry: load(t, shop), inputs: []text{{"", "all.ndjson", in}}, service: "risk", asServed: true}
	m.spine = "at,user\n1700000004999,u\n1700000005000,u\n"
	got, summary, err := m.run(t)
	if want := "at,user,paid,logins\n1700000004999,u,0,1\n1700000005000,u,1,1\n"; got != want || err != nil {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
	first := `all.ndjson:2: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one`
	if summary.SetAside != 2 || fmt.Sprint(summary.FirstSetAside) != first || summary.Passed != 1 {
		t.Errorf("the summary is %+v, want 2 set aside and 1 passed", summary)
	}
	m.asServed = false
	if _, _, err := m.run(t); fmt.Sprint(err) != first {
		t.Errorf("got  %v\nwant %s", err, first)
	}
}

// A cell of another type than its field matters only in events of the stream. As served, these are set aside.
func TestCellsOfOtherTypes(t *testing.T) {
	m := making{Registry: load(t, shop), stream: "pay", names: []string{"paid"}, inputs: []text{{"pay", "pay.csv", `kind,id,at,user,card,shop,amount,came
pay,p1,1700000000000,u,1,1,1.5,1700000000000
other,,n/a,,n/a,n/a,n/a,n/a
pay,p2,1700000001000,u,1,1,"1,5",1700000001000
pay,p3,1700000002000,u,1,1,2,1700000002000
`}}}
	const bad = "pay.csv:4: stream pay: amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one"
	if _, _, err := m.run(t); fmt.Sprint(err) != bad {
		t.Errorf("got  %v\nwant %s", err, bad)
	}
	m.asServed, m.recordTime = true, "came"
	got, summary, err := m.run(t)
	if want := "id,paid\np1,1.5\np3,3.5\n"; err != nil || got != want || summary.SetAside != 1 || summary.Passed != 1 || fmt.Sprint(summary.FirstSetAside) != bad {
		t.Errorf("error %v, %+v, got\n%s\nwant 1 passed, 1 set aside, and\n%s", err, summary, got, want)
	}
}

// Columns copied into a Parquet file get the type of their values, or text if a type would change
// them.
func TestTypesOfCopiedColumns(t *testing.T) {
	m := shopMaking(t)
	m.names, m.parquet, m.rowGroup = []string{"count"}, &bytes.Buffer{}, 1<<20
	m.spine = "at,user,label,rate,yes,code,great,hex,mixed,none\n" +
		"1700000002000,u,-1,1,True,007,1,12e34,1,\n" +
		"1700000003000,u,,2.5e0,FALSE,8,123456789012345678901,1e999,true,\n"
	if _, _, err := m.run(t); err != nil {
		t.Fatal(err)
	}
	file := open(t, m.parquet.Bytes())
	want := `message training_set {
	optional int64 at (INT(64,true));
	optional binary user (STRING);
	optional int64 label (INT(64,true));
	optional double rate;
	optional boolean yes;
	optional binary code (STRING);
	optional binary great (STRING);
	optional binary hex (STRING);
	optional binary mixed (STRING);
	optional binary none (STRING);
	optional int64 count (INT(64,true));
}`
	if diff := cmp.Diff(want, file.Schema().String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rows, got := file.RowGroups()[0].Rows(), ""
	buffer := make([]parquet.Row, 2)
	if n, err := rows.ReadRows(buffer); n != 2 {
		t.Fatal(err)
	}
	for _, row := range buffer {
		for _, v := range row {
			got += v.String() + ","
		}
	}
	if want := "1700000002000,u,-1,1,true,007,1,12e34,1,<null>,4,1700000003000,u,<null>,2.5,false,8,123456789012345678901,1e999,true,<null>,4,"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// Every invalid use has a message.
func TestBadTrainingSets(t *testing.T) {
	spine := func(header string, rows ...string) func(*making) {
		return func(m *making) { m.spine = header + "\n" + strings.Join(rows, "\n") }
	}
	for _, c := range []struct {
		change func(*making)
		want   string
	}{
		{spine("user,time"), `spine.csv:1: the moments of the rows: unknown column "at"; known: time, user; --time-column names another`},
		{spine("at,user"), "spine.csv:1: the spine has no rows"},
		{spine("at,usr", "1,u"), `spine.csv:1: feature "paid" needs user: unknown column "user"; did you mean "usr"?`},
		{spine("at,user", "x,u"), `spine.csv:2: column at: expected a time: milliseconds since 1970, RFC 3339 such as 2026-01-31T23:59:59.999Z, or 2026-01-31 23:59:59 in UTC, found "x"`},
		{spine("at,user", ",u"), "spine.csv:2: column at: the row has no time"},
		{spine("at,user", "1700000000000,\xff"), "spine.csv:2: column user: the string is not valid UTF-8"},
		{spine("at,user,logins", "1,u,2"), `column "logins" is in the spine and also in the output; rename the spine's column`},
		{spine("at,user", "1700000002,u", "1700000003,u"), "none of the 2 rows finds an event: the moments of the rows are from 1970-01-20T16:13:20.002Z to 1970-01-20T16:13:20.003Z, the events from 2023-11-14T22:13:20Z to 2023-11-14T22:13:23Z; are the entities written as in the events?"},
		{spine("at,user", "1700000002000,U"), "none of the 1 rows finds an event: the moments of the rows are from 2023-11-14T22:13:22Z to 2023-11-14T22:13:22Z, the events from 2023-11-14T22:13:20Z to 2023-11-14T22:13:23Z; are the entities written as in the events?"},
		{func(m *making) {
			m.spine, m.service, m.names = "at,card,user\n1700000002000,1,u\n", "", []string{"known_card", "card_logins"}
		},
			`card is of type int for feature "known_card" and of type string for "card_logins": make two training sets`},
		{func(m *making) { m.service = "rsk" }, `unknown service "rsk"; did you mean "risk"?`},
		{func(m *making) { m.service = "lists" }, `feature "ips" is a list, which a CSV cell cannot hold; write a .parquet file`},
		{func(m *making) { m.names = []string{"neer"} }, `unknown feature or field "neer" of stream pay; did you mean "near"?`},
		{func(m *making) { m.spine, m.names = "at\n1", []string{"amount"} }, `unknown feature "amount"; did you mean "count"?`},
		{func(m *making) { m.names = []string{"known"} }, `feature "known" needs ip, which stream pay does not have`},
		{func(m *making) { m.names = []string{"card_logins"} }, `feature "card_logins" needs card of type string, but in stream pay it is of type int`},
		{func(m *making) { m.inputs = m.inputs[:1] }, `feature "logins" reads events of stream login, which has no input; add --input login=FILE`},
		{func(m *making) { m.inputs[0].content = `{"kind":"other"}` + "\n{}" }, `pay.ndjson: none of its 2 events belongs to stream pay, which takes events with match kind == "pay"`},
		{func(m *making) { m.inputs[0] = text{"", "all.ndjson", `{"topic":"x","value":{}}`} }, "all.ndjson: none of its 1 events matches any stream by topic and match"},
		{func(m *making) { m.inputs[0].stream = "" }, `pay.ndjson:1: expected an envelope {"topic", "key", "value"}; for events without an envelope, name the stream: STREAM=FILE`},
		{func(m *making) { m.inputs[0].content = "" }, "no event is of stream pay, so there are no rows"},
		{func(m *making) { m.asServed = true }, `pay.ndjson:1: nothing says when the record came, as it was served: --record-time names the field, or the envelope has a "timestamp"`},
		{func(m *making) { m.asServed, m.recordTime = true, "came" }, "pay.ndjson: all 4 events were set aside; the first: pay.ndjson:1: stream pay: came: the field record time is required"},
		{func(m *making) { m.asServed, m.recordTime, m.inputs = true, "came", m.inputs[1:] }, `feature "paid" reads events of stream pay, which has no input; add --input pay=FILE`},
	} {
		m := shopMaking(t)
		m.service = "risk"
		c.change(&m)
		if _, _, err := m.run(t); fmt.Sprint(err) != c.want {
			t.Errorf("\ngot  %v\nwant %s", err, c.want)
		}
	}
}

// The field of a record's time decides also for envelopes, of all streams, rather than their timestamps.
func TestRecordTimeOfEnvelopes(t *testing.T) {
	m := making{Registry: load(t, `
streams:
  pay: {topic: pays, timestamp: at, id: id, fields: {user: string}}
  login: {topic: logins, timestamp: at, fields: {user: string}}
features:
  pays: COUNT(1h, pay, user, tile=exact)
  logins: COUNT(1h, login, user)
`), stream: "pay", names: []string{"pays", "logins"}, asServed: true, recordTime: "came"}
	m.inputs = []text{{"", "all.ndjson", `{"topic":"pays","value":{"id":"late","at":1700000000000,"came":1700000009000,"user":"u"},"timestamp":1700000000000}
{"topic":"pays","value":{"id":"early","at":1700000000500,"came":1700000001000,"user":"u"},"timestamp":1700000000500}
{"topic":"logins","value":{"at":1700000000000,"came":1700000005000,"user":"u"}}
{"topic":"pays","value":{"id":"last","at":1700009000000,"came":1700009000000,"user":"u"},"timestamp":1700000000000}
`}}
	const want = "id,pays,logins\nearly,1,0\nlate,1,1\nlast,1,0\n"
	if got, _, err := m.run(t); err != nil || got != want {
		t.Errorf("error %v, got\n%s\nwant\n%s", err, got, want)
	}
}

// The field of a record's time is read in the unit that the stream names for it.
func TestUnitsOfRecordTimes(t *testing.T) {
	r := load(t, `
streams:
  pay:
    topic: pays
    timestamp: {path: at, unit: s}
    id: id
    fields: {user: string, came: {type: timestamp, unit: datetime}}
features:
  pays: COUNT(1h, pay, user, tile=exact)
`)
	for recordTime, want := range map[string]string{"at": "id,pays\na,1\nb,2\n", "came": "id,pays\nb,1\na,1\n", "other": "id,pays\nb,1\na,1\n"} {
		for name, in := range map[string]string{
			"in.csv": "id,at,user,came,other\na,1700000000,u,2023-11-14 22:13:25,2023-11-14T22:13:25Z\nb,1700000001,u,2023-11-14 22:13:21,1700000001000\n",
			"in.ndjson": `{"id":"a","at":1700000000,"user":"u","came":"2023-11-14 22:13:25","other":"2023-11-14T22:13:25Z"}
{"id":"b","at":1700000001,"user":"u","came":"2023-11-14 22:13:21","other":1700000001000}`,
		} {
			m := making{Registry: r, stream: "pay", asServed: true, recordTime: recordTime, inputs: []text{{"pay", name, in}}}
			if got, _, err := m.run(t); err != nil || got != want {
				t.Errorf("%s of %s: error %v, got\n%s\nwant\n%s", recordTime, name, err, got, want)
			}
		}
	}
}

// Streams of a topic may each have another time for a record. Its event counts for each of them from their own time on,
// and is set aside as a whole.
func TestStreamsWithTimesOfTheirOwn(t *testing.T) {
	at := func(second int) int64 { return 1_700_000_000_000 + 1000*int64(second) } // all in the same minute
	m := making{Registry: load(t, `
streams:
  made:    {topic: orders, timestamp: made, id: id, fields: {user: string, n: int}}
  settled: {topic: orders, timestamp: settled, fields: {user: string, n: int}}
features:
  made_1h:  COUNT(1h, made, user)
  paid_1h:  SUM(1h, settled, n, user)
  paid_10s: SUM(10s, settled, n, user, tile=exact)
  rate:     COUNT(1h, settled, user, where='n * n * n > 0')
`), names: []string{"made_1h", "paid_1h", "paid_10s"}}
	envelopes, log := "", &testLog{topic: "orders", since: state.MinTime}
	for _, e := range []struct {
		id               string
		made, settled, n int
	}{{"a", 0, 10, 1}, {"b", 15, 5, 2}, {"c", 15, 15, 4}, {"poison", 1, 2, 1 << 62}} {
		line := fmt.Sprintf(`{"id":%q,"made":%d,"settled":%d,"user":"u","n":%d}`, e.id, at(e.made), at(e.settled), e.n)
		log.records = append(log.records, record.Record{Timestamp: at(15), Value: []byte(line)})
		if e.id != "poison" {
			envelopes += fmt.Sprintf(`{"topic":"orders","value":%s}`+"\n", line)
		}
	}
	files := making{Registry: m.Registry, names: m.names, inputs: []text{{"", "all.ndjson", envelopes}}}
	m.logs = []*testLog{log}
	spine, wanted := "at,user\n", "at,user,made_1h,paid_1h,paid_10s\n"
	for _, row := range [][4]int{{0, 1, 0, 0}, {4, 1, 0, 0}, {5, 1, 2, 2}, {9, 1, 2, 2}, {10, 1, 3, 3}, {14, 1, 3, 3}, {15, 3, 7, 5}} {
		spine += fmt.Sprintf("%d,u\n", at(row[0]))
		wanted += fmt.Sprintf("%d,u,%d,%d,%d\n", at(row[0]), row[1], row[2], row[3])
	}
	for _, c := range []struct {
		making
		setAside int
	}{{files, 0}, {m, 1}} {
		for _, rows := range []struct{ stream, spine, want string }{
			{"", spine, wanted}, {"made", "", "id,made_1h,paid_1h,paid_10s\na,1,0,0\nb,2,3,1\nc,3,7,5\n"},
		} {
			c.stream, c.spine = rows.stream, rows.spine
			got, summary, err := c.run(t)
			if err != nil || got != rows.want || summary.Events != 3 || summary.SetAside != c.setAside {
				t.Errorf("error %v, %d events, %d set aside, got\n%s\nwant 3 events, %d set aside, and\n%s",
					err, summary.Events, summary.SetAside, got, c.setAside, rows.want)
			}
		}
	}
}

// The event in hand of a row that is an event is that event. A spine has it in columns, or not at all.
func TestEventInHandOfRows(t *testing.T) {
	m := shopMaking(t)
	m.Registry = load(t, strings.Replace(shop, "services:", `  times: {expr: event.amount / count, stream: pay}
  more: {expr: 'times > 1 and event.shop == 1', stream: pay}
  alike: COUNT(1d, pay, user, where='amount == event.amount')
services:`, 1))
	m.service, m.names, m.quality = "", []string{"times", "more"}, false
	got, _, err := m.run(t)
	want := `id,times,more
p1,1.5,true
p2,1,false
p3,1,false
p4,1,false
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.stream, m.spine = "", "at,user,event.amount\n1700000001000,u,5\n1700000001000,u,\n1700000001000,,7\n"
	got, summary, err := m.run(t)
	want = `at,user,event.amount,times,more
1700000001000,u,5,2.5,
1700000001000,u,,,
1700000001000,,7,,
`
	if diff := cmp.Diff(want, got); diff != "" || err != nil || summary.Found != 2 {
		t.Errorf("%v, %+v (-want +got):\n%s", err, summary, diff)
	}
	m.spine, m.names, m.quality = "at,user\n1700000001000,u\n", []string{"times", "count"}, true
	if got, _, err = m.run(t); err != nil || !strings.Contains(got, "\n1700000001000,u,,NO_EVENT,") {
		t.Errorf("%v %s", err, got)
	}
	m.spine, m.names = "at,user\n1700000001000,u\n", []string{"alike"}
	if _, _, err = m.run(t); err == nil || err.Error() != `none of the 1 rows has a value: feature "alike" reads the event in hand, which the rows have only with a column for each of event.amount` {
		t.Error(err)
	}
	m.spine, m.quality = "at,user,event.amount\n1700000001000,u,1.5\n1700000001000,u,\n1700000001000,u,7\n1700000001000,,7\n", false
	want = `at,user,event.amount,alike
1700000001000,u,1.5,1
1700000001000,u,,0
1700000001000,u,7,0
1700000001000,,7,
`
	got, _, err = m.run(t)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	m.Registry = load(t, strings.Replace(shop, "services:", `  again: {expr: 'event.user == "u" and event.amount > count', stream: pay}
services:`, 1))
	m.spine, m.names = "at,user,event.user,event.amount\n1700000001000,u,u,5\n1700000001000,u,v,5\n1700000001000,u,,5\n", []string{"again"}
	want = `at,user,event.user,event.amount,again
1700000001000,u,u,5,true
1700000001000,u,v,5,
1700000001000,u,,5,
`
	got, _, err = m.run(t)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("an event of another user: %v (-want +got):\n%s", err, diff)
	}
	m.Registry = load(t, strings.Replace(shop, "services:", `  times: {expr: event.amount / count, stream: pay}
services:`, 1))
	m.spine, m.names = "at,user,event.amount\n1700000001000,u,much\n", []string{"times"}
	if _, _, err = m.run(t); err == nil || err.Error() != `spine.csv:2: column event.amount: expected a 64-bit decimal with at most 2 digits after the decimal point, found a string that is not one` {
		t.Error(err)
	}
	m.spine, m.stream, m.Registry = "", "login", load(t, strings.Replace(strings.Replace(shop, "timestamp: at, fields: {user: string, ip", "timestamp: at, id: ip, fields: {user: string, ip", 1),
		"services:", "  times: {expr: event.amount / count, stream: pay}\nservices:", 1))
	if _, _, err = m.run(t); err == nil || err.Error() != `feature "times" reads the event of stream pay, and the rows are events of login` {
		t.Error(err)
	}
}

// Events of a stream of several topics come in envelopes of each, also with the time of their records, or as those of
// the first topic.
func TestEventsOfSeveralTopics(t *testing.T) {
	r := load(t, `
streams:
  pay:
    topics:
      pays: {}
      transfers: {timestamp: {path: ts, unit: s}, id: key, fields: {user: who.user, cents: {path: value}}}
    timestamp: at
    id: id
    fields: {user: string, cents: int}
features:
  pays: COUNT(1h, pay, user, tile=exact)
  cents: SUM(1h, pay, cents, user, tile=exact)
`)
	const want = "id,pays,cents\na,1,5\nb,2,12\nc,3,13\n"
	envelopes := `{"topic":"pays","value":{"id":"a","at":1700000000000,"came":1700000000000,"user":"u","cents":5}}
{"topic":"transfers","value":{"key":"b","ts":1700000001,"came":1700000001000,"who":{"user":"u"},"value":7}}
{"topic":"pays","value":{"id":"c","at":1700000002000,"came":1700000002000,"user":"u","cents":1}}
`
	for name, m := range map[string]making{
		"envelopes":           {inputs: []text{{"", "in.ndjson", envelopes}}},
		"envelopes as served": {inputs: []text{{"", "in.ndjson", envelopes}}, asServed: true, recordTime: "came"},
		"a table of the first": {inputs: []text{
			{"", "transfers.ndjson", strings.Split(envelopes, "\n")[1] + "\n"},
			{"pay", "pays.csv", "id,at,user,cents\na,1700000000000,u,5\nc,1700000002000,u,1\n"},
		}},
	} {
		m.Registry, m.stream, m.names = r, "pay", []string{"pays", "cents"}
		if got, _, err := m.run(t); err != nil || got != want {
			t.Errorf("%s: error %v, got\n%s\nwant\n%s", name, err, got, want)
		}
	}
}
