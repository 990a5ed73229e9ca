package model

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/tables"
	"github.com/weir-stream/weir/value"
)

const rowsDefinitions = `
streams: {pay: {topic: pay, timestamp: t, fields: {user: string, shop: string, ip: string, amount: {type: decimal, scale: 2}}}}
tables:
  merchant: {topic: merchants, key: id, match: '(kind ?? "") != "other"', fields: {risk: string, limit: {type: decimal, scale: 2}}}
  account: {topic: accounts, format: debezium, key: user, fields: {level: int}}
lists:
  blocked: {topic: lists}
  hidden: {topic: lists, type: network}
features:
  spent: SUM(lifetime, pay, amount, user, shop)
  risk: {expr: merchant.risk, by: shop, default: unknown}
  over: {expr: spent > merchant.limit, by: shop}
  level: {expr: account.level}
  is_blocked: {expr: 'user in blocked or (level ?? 0) > 1'}
  is_free: {expr: user not in list(blocked)}
  why: {expr: blocked.why, by: user}
  hidden_why: {expr: 'ip in hidden ? hidden.why : nil', by: ip}
  of_event: {expr: '(event.ip in list(hidden) ? 100 : 0) + (event.shop in merchant ? 10 : 0) + (event.user not in blocked ? 1 : 0) + 0 * spent', stream: pay, default: -1}
  of_both: {expr: 'user in blocked or event.user in blocked', stream: pay}
`

// rows is a registry with tables, and a model that takes their records.
type rows struct {
	rapid.TB
	*fixture
	offset int64
	taken  []*tables.Contents
}

func newRows(t rapid.TB, definitions string) *rows {
	r, err := defined.Parse(definitions)
	if err != nil {
		t.Fatal(err)
	}
	all := &rows{TB: t, fixture: &fixture{registry: r, model: New(r)}}
	for _, table := range r.Tables {
		all.taken = append(all.taken, tables.New(table))
	}
	return all
}

// write writes a record at a time; without a key if that is empty, and without a value if that is.
func (r *rows) write(topic string, partition int32, at int64, key, value string) {
	rec := record.Record{Partition: state.Partition{Topic: topic, ID: partition}, Offset: r.offset, Timestamp: at}
	if r.offset++; key != "" {
		rec.Key = []byte(key)
	}
	if value != "" {
		rec.Value = []byte(value)
	}
	if err := r.model.Apply(rec); err != nil {
		r.TB.Fatal(err)
	}
	for i, t := range r.registry.Tables {
		if t.Rows.Topic == topic {
			if _, err := r.taken[i].Take(&rec); err != nil {
				r.TB.Fatal(err)
			}
		}
	}
}

// answer returns the model's answer in words.
func (r *rows) answer(name, entity string, at int64) string {
	f, _ := r.registry.Feature(name)
	a := r.model.Answer(f, entity, at)
	return inWords(a.Value, !a.Found, r.model.Younger(f, entity, at))
}

func inWords(v value.Value, nothing, younger bool) string {
	text := string(v.AppendText(nil))
	switch {
	case younger: // the status is LATER_EVENTS, with a row and without
		text += " younger"
	case nothing:
		text += " nothing"
	}
	return strings.TrimSpace(text)
}

// The newest row of a key counts, whenever it was written, until it is deleted.
func TestRows(t *testing.T) {
	r := newRows(t, rowsDefinitions)
	want := func(name, entity string, at int64, want string) {
		t.Helper()
		if got := r.answer(name, entity, at); got != want {
			t.Errorf("%s of %s at %d: got %q, want %q", name, entity, at, got, want)
		}
	}
	want("risk", "s1", 9, "unknown nothing")
	r.write("merchants", 0, 10, "s1", `{"id":"s1","risk":"high","limit":5}`)
	r.write("merchants", 0, 20, "s1", `{"id":"s1","risk":"low","limit":6}`)
	r.write("pay", 0, 30, "", `{"t":30,"user":"u1","shop":"s1","amount":5.50}`)
	want("risk", "s1", 19, "low younger")
	want("risk", "s1", 20, "low")
	want("over", "u1|s1", 30, "false")
	r.write("merchants", 0, 15, "s1", `{"id":"s1","limit":5}`) // the order of a key's records counts, not their times
	want("risk", "s1", 20, "unknown")
	want("over", "u1|s1", 30, "true")
	r.write("merchants", 1, 15, "", `{"id":"s1","risk":"of two, the last partition's"}`)
	want("risk", "s1", 30, "of two, the last partition's")
	r.write("merchants", 1, 14, "", `{"id":"s1","risk":"older"}`) // without a key, times count
	want("risk", "s1", 30, "of two, the last partition's")
	r.write("merchants", 1, 40, "", `{"id":"s1","risk":"without a key"}`)
	want("risk", "s1", 40, "without a key")
	r.write("merchants", 0, 50, "s1", `{"id":"s2","risk":"renamed"}`)
	want("risk", "s2", 50, "renamed")
	for _, ends := range []string{"", `{"id":"s2","kind":"other"}`, `{"id":"s2","limit":"much"}`, `{"risk":"no key"}`} {
		r.write("merchants", 0, 60, "s1", `{"id":"s2","risk":"again"}`)
		want("risk", "s2", 60, "again")
		r.write("merchants", 0, 60, "s1", ends)
		want("risk", "s2", 60, "unknown nothing")
	}
	r.write("accounts", 0, 10, "a", `{"before":null,"after":{"user":"u1","level":2},"op":"c"}`)
	want("level", "u1", 10, "2")
	want("is_blocked", "u1", 10, "true")
	r.write("accounts", 0, 10, "a", `{"before":{"user":"u1","level":2},"after":null,"op":"d"}`)
	want("level", "u1", 10, "nothing")

	r.write("lists", 0, 10, "blocked/u1", `{"list":"blocked","value":"u1","until":"1970-01-01T00:00:00.020Z","why":"case 1"}`)
	want("why", "u1", 19, "case 1")
	want("why", "u1", 20, "nothing")
	want("is_blocked", "u1", 9, "true younger")
	want("is_free", "u1", 10, "false")
	want("is_free", "u1", 20, "true nothing")
	r.write("lists", 0, 30, "blocked/u1", `{"list":"blocked","value":"u1","removed":true}`)
	want("is_blocked", "u1", 30, "false nothing")
	r.write("lists", 0, 10, "hidden/10.0.0.0/8", `{"list":"hidden","value":"10.0.0.0/8","why":"wide"}`)
	r.write("lists", 0, 10, "hidden/10.1.0.0/16", `{"list":"hidden","value":"10.1.0.0/16","until":"1970-01-01T00:00:00.020Z","why":"narrow"}`)
	want("hidden_why", "10.1.2.3", 10, "narrow")
	want("hidden_why", "10.1.2.3", 20, "wide")
	want("hidden_why", "11.1.2.3", 20, "nothing")
	want("hidden_why", "nowhere", 20, "nothing")
	for name, want := range map[string]string{"risk": "[s1 s2]", "over": "[u1|s1]", "why": "[u1]", "hidden_why": "[]"} {
		f, _ := r.registry.Feature(name)
		if got := fmt.Sprint(r.model.Entities(f)); got != want {
			t.Errorf("entities of %s: got %s, want %s", name, got, want)
		}
	}
}

// inHand draws an event that is being scored, or none.
func inHand(t *rapid.T, r *rows) *record.Event {
	pay, _ := r.registry.Stream("pay")
	e := &record.Event{Stream: pay, Values: make([]value.Value, len(pay.Fields))}
	for field, texts := range [][]string{{"", "u1", "u2", "u3"}, {"", "s1", "s2", "s3"}, {"", "10.1.2.3", "11.1.1.1", "no"}} {
		if text := rapid.SampledFrom(texts).Draw(t, pay.Fields[field].Name); text != "" {
			e.Values[field] = value.Value{Type: value.String, Str: []byte(text)}
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "no event") == 0 {
		return nil
	}
	return e
}

// What the tables of a process find equals the model, after random records.
func TestTablesEqualModel(t *testing.T) {
	statuses := map[query.Status]int{}
	definitions := strings.Replace(rowsDefinitions, "key: id,", "key: id, timestamp: since,", 1)
	rapid.Check(t, func(t *rapid.T) {
		r := newRows(t, definitions)
		pick := func(texts ...string) string { return rapid.SampledFrom(texts).Draw(t, "pick") }
		for range rapid.IntRange(0, 30).Draw(t, "records") {
			at, partition := rapid.Int64Range(0, 9).Draw(t, "at"), int32(rapid.IntRange(0, 1).Draw(t, "partition"))
			switch pick("merchants", "merchants", "accounts", "blocked", "hidden") {
			case "merchants":
				row := pick("", `{"id":"s1"}`, `{"id":"s1","kind":"other"}`, `{"id":"s1","limit":"bad"}`,
					`{"id":"s1","risk":"high","limit":1}`, `{"id":"s2","risk":"low","limit":-1}`, `{"id":"s2","risk":"high","limit":-1}`)
				since := rapid.Int64Range(0, 9).Draw(t, "since") // before its record, or after it
				row = strings.Replace(row, `{`, fmt.Sprintf(`{"since":%d,`, since), 1)
				r.write("merchants", partition, at, pick("", "s1", "s2", "other"), row)
			case "accounts":
				r.write("accounts", partition, at, pick("", "a"), pick("", `{"before":null,"after":{"user":"u1","level":1},"op":"c"}`,
					`{"before":null,"after":{"user":"u1","level":2},"op":"u"}`, `{"before":null,"after":{"user":"u1"},"op":"u"}`, `{"before":null,"after":{"user":"u2"},"op":"u"}`,
					`{"before":null,"after":{"user":"u3"},"op":"u"}`, `{"before":{"user":"u1"},"after":null,"op":"d"}`))
			case "blocked":
				value := pick("u1", "u2")
				r.write("lists", 0, at, "blocked/"+value, fmt.Sprintf(`{"list":"blocked","value":%q,"why":"w%d"%s}`, value, at, pick("", `,"removed":true`, `,"until":"1970-01-01T00:00:00.005Z"`)))
			case "hidden":
				value := pick("10.0.0.0/8", "10.1.0.0/16", "10.1.2.3", "2001:db8::/32", "not a network")
				r.write("lists", 0, at, "hidden/"+value, fmt.Sprintf(`{"list":"hidden","value":%q,"why":"w%d"%s}`, value, at, pick("", `,"removed":true`, `,"until":"1970-01-01T00:00:00.005Z"`)))
			}
		}
		entities := map[string][]string{
			"shop": {"s1", "s2", "s3"}, "shop user": {"s1|u1", "s2|u1"}, "user": {"u1", "u2", "u3"}, "ip": {"10.1.2.3", "10.1.0.0", "10.9.9.9", "2001:db8::1", "::1", "no"},
		}
		for _, f := range r.registry.Features {
			if len(f.Parts()) == 0 {
				continue
			}
			for _, entity := range entities[strings.Join(f.By, " ")] {
				at := rapid.Int64Range(0, 10).Draw(t, "asked at")
				r.model.InHand = inHand(t, r)
				var reading query.Reading
				reading.Reset(10)
				reading.SetTables(tables.Fixed(r.taken...))
				reading.Want(f, entity, at)
				if err := reading.Read(context.Background(), memory.New()); err != nil {
					t.Fatal(err)
				}
				reading.SetInHand(r.model.InHand)
				var a query.Answer
				reading.Next(&a)
				statuses[a.Status]++
				if got, want := inWords(a.Value, a.Status == query.NotFound || a.Status == query.NoEvent, a.LaterEvents), r.answer(f.Name, entity, at); got != want {
					t.Fatalf("%s of %s at %d is %q (%s), want %q", f.Name, entity, at, got, a.Status, want)
				}
			}
		}
	})
	for _, s := range []query.Status{query.Present, query.NullValue, query.NotFound, query.LaterEvents, query.NoEvent} {
		if statuses[s] == 0 {
			t.Errorf("no answer was %s: %v", s, statuses)
		}
	}
}
