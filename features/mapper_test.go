package features_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const mapperDefinitions = `
streams:
  transaction:
    topic: events
    match: type == "transaction"
    timestamp: {path: timestamp, unit: ms}
    fields:
      user_id: {type: string, required: true}
      device_id: string
      ip: string
      ip_c: {type: string, expr: 'cidr(ip, 24)'}
      amount: {type: decimal, scale: 2}
      score: float
      status: string
  paid:
    topic: events
    match: status == "approved"
    timestamp: {path: timestamp, unit: ms}
    fields:
      user_id: string
features:
  device_tx_7d: COUNT(7d, transaction, device_id)
  user_amount_1d: SUM(1d, transaction, amount, user_id)
  user_approved_1d: SUM(1d, transaction, amount, user_id, where='status == "approved"')
  user_best_1h: MAX(1h, transaction, score, user_id)
  user_device_tx_1d: COUNT(1d, transaction, user_id, device_id)
  device_users_30d: COUNT_DISTINCT(30d, transaction, device_id, user_id)
  ipc_devices_30d: APPROX_COUNT_DISTINCT(30d, transaction, ip_c, device_id)
  user_devices: COUNT_DISTINCT(30d, transaction, user_id, device_id, method=last_seen)
  paid_1d: COUNT(1d, paid, user_id)
`

const recorded = int64(1_700_000_000_000) // 2023-11-14 22:13:20 UTC

func event(value string) *record.Record {
	return &record.Record{
		Partition: state.Partition{Topic: "events"}, Offset: 42, Timestamp: recorded,
		Value: []byte(strings.ReplaceAll(value, "NOW", fmt.Sprint(recorded))),
	}
}

const transaction = `{"event_id":"t000000001","timestamp":NOW,"type":"transaction","user_id":"u000001",` +
	`"device_id":"d000001","card_id":"c000001","merchant_id":"m00001","ip":"10.1.2.3","amount":166.60,"score":0.5,"status":"declined"}`

// mutations writes a batch as text, one line for each mutation.
func mutations(b *state.Batch) []string {
	var lines []string
	for _, u := range b.Updates {
		if u.Hash != state.EntityHash(u.Entity) {
			lines = append(lines, "wrong hash")
		}
		for _, mutation := range b.Mutations[u.From:u.To] {
			s := mutation.Series
			what := fmt.Sprintf("%d@%d %s %s(%s) tile %d", u.Range, u.Offset, u.Entity, s.Measure, s.Field, mutation.Tile)
			if s.Where != "" {
				what += " where " + s.Where
			}
			if s.Per != "" {
				what += fmt.Sprintf(" key %q", mutation.Key)
			}
			var member []byte
			if mutation.Text != nil {
				member = mutation.Member
			}
			lines = append(lines, fmt.Sprintf("%s num %d member %q", what, mutation.Num, member))
		}
	}
	slices.Sort(lines)
	return lines
}

func mustMap(t testing.TB, m *features.Mapper, rec *record.Record, b *state.Batch) features.Outcome {
	t.Helper()
	out, err := m.Map(rec, 3, b)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestMap(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{Now: 5}
	out := mustMap(t, m, event(transaction), b)
	if out.Stream != "transaction" || len(out.Streams) != 1 || out.Late || b.Now != recorded {
		t.Errorf("got %+v, newest timestamp %d; want one transaction, not late", out, b.Now)
	}
	equalLines(t, mutations(b), []string{
		`3@42 10.1.2.0/24 approx(device_id) tile 19675 num 0 member "d000001"`,
		`3@42 d000001 count() tile 19675 num 1 member ""`,
		`3@42 d000001 distinct(user_id) tile 19675 num 0 member "u000001"`,
		`3@42 u000001 last_times(device_id) tile 1700000000000 num 1700000000000 member "d000001"`,
		`3@42 u000001 max(score) tile 28333333 num 4602678819172646912 member ""`,
		`3@42 u000001 sum(amount) tile 472222 num 16660 member ""`,
		`3@42 u000001|d000001 count() tile 472222 num 1 member ""`,
	})
}

// An event counts in every stream that takes it.
func TestMapTwoStreams(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	out := mustMap(t, m, event(`{"type":"transaction","timestamp":NOW,"user_id":"a|b","amount":"1.5","status":"approved"}`), b)
	if !slices.Equal(out.Streams, []string{"paid", "transaction"}) || out.Stream != "paid" {
		t.Errorf("got %+v, want the streams paid and transaction", out)
	}
	equalLines(t, mutations(b), []string{
		`3@42 a\|b count() tile 472222 num 1 member ""`,
		`3@42 a\|b sum(amount) tile 472222 num 150 member ""`,
		`3@42 a\|b sum(amount) tile 472222 where status == "approved" num 150 member ""`,
	})
}

// Mutations carry keys, conditions and times where their series need them.
func TestMapKeysAndTimes(t *testing.T) {
	r := defined.Registry(t, mapperDefinitions[:strings.Index(mapperDefinitions, "features:")]+`features:
  spent: SUM(7d, transaction, amount, user_id, per=status)
  top: TOP_K(7d, transaction, device_id, user_id, k=3)
  sizes: HISTOGRAM(7d, transaction, amount, user_id, bins=[10, 100])
  declined: RATIO(7d, transaction, user_id, condition='amount > 200')
  since: TIME_SINCE_FIRST(7d, transaction, user_id)
  last: LAST(7d, transaction, amount, user_id)
  least: MIN(7d, transaction, status, user_id)
  spread: STDDEV(7d, transaction, score, user_id)
`)
	b := &state.Batch{}
	mustMap(t, r.NewMapper(), event(transaction), b)
	const midnight = 19675 * 86_400_000
	equalLines(t, mutations(b), []string{
		`3@42 u000001 count() tile 19675 key "\x02" num 1 member ""`,
		`3@42 u000001 count() tile 19675 key "d000001" num 1 member ""`,
		`3@42 u000001 count() tile 19675 num 1 member ""`,
		`3@42 u000001 earliest() tile 19675 num 1700000000000 member ""`,
		`3@42 u000001 last_value(amount) tile 19675 num 1700000000000 member "\xa8\x84\x02"`,
		fmt.Sprintf(`3@42 u000001 least_text(status) tile 19675 num %d member "declined"`, midnight),
		`3@42 u000001 moments(score) tile 19675 num 4602678819172646912 member ""`,
		`3@42 u000001 sum(amount) tile 19675 key "declined" num 16660 member ""`,
	})
	b.Reset()
	mustMap(t, r.NewMapper(), event(`{"type":"transaction","timestamp":NOW,"user_id":"u","amount":"201"}`), b)
	equalLines(t, mutations(b), []string{
		`3@42 u count() tile 19675 key "\x02" num 1 member ""`,
		`3@42 u count() tile 19675 num 1 member ""`,
		`3@42 u count_holds() tile 19675 num 1 member ""`,
		`3@42 u earliest() tile 19675 num 1700000000000 member ""`,
		`3@42 u last_value(amount) tile 19675 num 1700000000000 member "\x88\xba\x02"`,
	})
}

// The elements of a record are mapped as if each came alone.
func TestMapElements(t *testing.T) {
	r := defined.Registry(t, `
streams:
  all: {topic: events, timestamp: t, fields: {user: string}}
  line: {topic: events, each: items, timestamp: t, fields: {user: string, sku: {type: string, path: items.sku}, price: {type: int, path: items.price}}}
features:
  n: COUNT(1d, all, user)
  skus: COUNT_DISTINCT(1d, line, user, sku)
  dear: SUM(1d, line, price, user, where='price > 5')
  by_sku: COUNT(1d, line, sku, where='price <= 5')
`)
	record := func(items string) string { return `{"t":NOW,"user":"u","items":[` + items + `]}` }
	items := []string{`{"sku":"a","price":6}`, `{"sku":"b","price":5}`, `{"sku":"a","price":7}`, `{"price":1}`}
	m, together := r.NewMapper(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	out := mustMap(t, m, event(record(strings.Join(items, ","))), together)
	if fmt.Sprint(out.Streams) != "[all line]" || out.Stream != "all" || len(out.Events) != 5 {
		t.Errorf("the streams are %v, the first %s, of %d events; want all and line, of 5 events", out.Streams, out.Stream, len(out.Events))
	}
	want := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	mustMap(t, m, event(record("")), want)
	whole := mutations(want) // of the stream of one event
	lines := slices.Clone(whole)
	for _, item := range items {
		alone := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		mustMap(t, m, event(record(item)), alone)
		lines = append(lines, slices.DeleteFunc(mutations(alone), func(line string) bool { return slices.Contains(whole, line) })...)
	}
	slices.Sort(lines)
	equalLines(t, mutations(together), lines)
}

func TestMapUnmatched(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	for _, rec := range []*record.Record{event(`{"type":"login"}`), {Partition: state.Partition{Topic: "others"}, Value: []byte("x")}} {
		if out := mustMap(t, m, rec, b); out.Stream != "" || len(out.Streams) != 0 {
			t.Errorf("got %+v, want no stream", out)
		}
	}
	if len(b.Updates) != 0 || b.Now != 0 {
		t.Errorf("an unmatched record changed the batch: %+v", b)
	}
}

// Nulls make neither an entity nor a value; the empty string makes both.
func TestMapNulls(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	mustMap(t, m, event(`{"type":"transaction","timestamp":NOW,"user_id":"","device_id":null,"ip":"nowhere"}`), b)
	if len(b.Updates) != 0 {
		t.Errorf("an event with nulls made the mutations %q, want none", mutations(b))
	}
	mustMap(t, m, event(`{"type":"transaction","timestamp":NOW,"user_id":"","device_id":""}`), b)
	equalLines(t, mutations(b), []string{
		`3@42  count() tile 19675 num 1 member ""`,
		`3@42  distinct(user_id) tile 19675 num 0 member ""`,
		`3@42  last_times(device_id) tile 1700000000000 num 1700000000000 member ""`,
		`3@42 | count() tile 472222 num 1 member ""`,
	})
}

// An event may be late for one series and not for another, judged by the record's time alone.
func TestMapLate(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	old := func(age int64) *record.Record {
		return event(strings.ReplaceAll(transaction, "NOW", fmt.Sprint(recorded-age)))
	}
	for _, c := range []struct {
		age   int64
		late  bool
		count int
	}{
		{0, false, 7},
		{3600_000, false, 7},
		{3 * 24 * 3600_000, true, 4},
		{365 * 24 * 3600_000, true, 0},
	} {
		b := &state.Batch{}
		if out := mustMap(t, m, old(c.age), b); out.Late != c.late || out.LateToDeadLetter || len(b.Mutations) != c.count {
			t.Errorf("age %d: got %+v, mutations %q; want late %v, %d mutations", c.age, out, mutations(b), c.late, c.count)
		}
		rec := old(c.age)
		rec.Timestamp = record.NoTime
		if out := mustMap(t, m, rec, b); out.Late {
			t.Errorf("age %d: late, although the record is not of a topic", c.age)
		}
	}
	m = defined.Registry(t, strings.Replace(mapperDefinitions, "match: type", "late: dead_letter\n    match: type", 1)).NewMapper()
	if out := mustMap(t, m, old(365*24*3600_000), &state.Batch{}); !out.LateToDeadLetter {
		t.Errorf("a late event for the dead letters: got %+v", out)
	}
}

// One mapper maps many events: nothing of one event remains in the next, and the batch's time never goes back.
func TestMapSequence(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	mustMap(t, m, event(transaction), b)
	b.Reset()
	b.Now = recorded + 5
	mustMap(t, m, event(`{"type":"transaction","timestamp":1699999999000,"user_id":"u2","device_id":"d2"}`), b)
	equalLines(t, mutations(b), []string{
		`3@42 d2 count() tile 19675 num 1 member ""`,
		`3@42 d2 distinct(user_id) tile 19675 num 0 member "u2"`,
		`3@42 u2 last_times(device_id) tile 1699999999000 num 1699999999000 member "d2"`,
		`3@42 u2|d2 count() tile 472222 num 1 member ""`,
	})
	if b.Now != recorded+5 {
		t.Errorf("the newest timestamp is %d, want %d", b.Now, recorded+5)
	}
}

func TestMapOversized(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	m.MaxRecordBytes = 10
	_, err := m.Map(event(`{"a": 1234}`), 0, &state.Batch{})
	var p *record.Poison
	if !errors.As(err, &p) || p.Reason != record.Oversized || p.Error() != "the record has 11 bytes; the limit is 10" {
		t.Errorf("a record that is too long: got error %v", err)
	}
	if _, err := m.Map(event(`{"a": 123}`), 0, &state.Batch{}); err != nil {
		t.Error(err)
	}
}

// brokenFormat fails for some records, as a defect of Weir would.
type brokenFormat struct{ record.Format }

func (f brokenFormat) NewScanner(tree *record.Node) record.Scanner {
	return brokenScanner{f.Format.NewScanner(tree)}
}

type brokenScanner struct{ record.Scanner }

func (s brokenScanner) Scan(rec *record.Record, values []record.Datum) error {
	err := s.Scanner.Scan(rec, values)
	if bytes.Contains(rec.Value, []byte("boom")) {
		_ = values[len(values)]
	}
	return err
}

// A defect that a record brings to light is that record's, and of no other: the process goes on.
func TestMapDefect(t *testing.T) {
	r := defined.Registry(t, mapperDefinitions)
	for _, s := range r.Streams {
		s.Format = brokenFormat{s.Format}
	}
	m, sound := r.NewMapper(), event(`{"type": "transaction", "timestamp": NOW, "user_id": "u1", "device_id": "d1"}`)
	var before, after, none state.Batch
	if _, err := m.Map(sound, 0, &before); err != nil || len(before.Mutations) == 0 {
		t.Fatalf("%d mutations, error %v", len(before.Mutations), err)
	}
	_, err := m.Map(event(`{"type": "transaction", "timestamp": NOW, "user_id": "boom"}`), 0, &none)
	var p *record.Poison
	const want = "this version of Weir has a defect, because of which it cannot read the record: runtime error: index out of range"
	if !errors.As(err, &p) || p.Reason != record.Defect || !strings.HasPrefix(p.Message, want) || !strings.Contains(p.Message, "features/mapper_test.go:") {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := m.Map(sound, 0, &after); err != nil || len(none.Mutations) > 0 || len(after.Mutations) != len(before.Mutations) {
		t.Errorf("%d mutations of the record, and %d of the one after it instead of %d; error %v", len(none.Mutations), len(after.Mutations), len(before.Mutations), err)
	}
}

// The batch stays valid when the memory of the record and the mapper is reused.
func TestMapCopies(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	rec := event(transaction)
	mustMap(t, m, rec, b)
	before := mutations(b)
	for i := range rec.Value {
		rec.Value[i] = 'x'
	}
	mustMap(t, m, event(strings.ReplaceAll(transaction, "0001", "0002")), &state.Batch{})
	equalLines(t, mutations(b), before)
}

// Poison adds nothing, not even to the streams that accepted the record.
func TestMapPoisonAddsNothing(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	_, err := m.Map(event(`{"type":"transaction","timestamp":NOW,"status":"approved"}`), 0, b)
	if err == nil || err.Error() != "stream transaction: user_id: the field user_id is required" {
		t.Errorf("got error %v, want that of the missing user_id", err)
	}
	if len(b.Updates)+len(b.Mutations) != 0 || b.Now != 0 {
		t.Errorf("poison changed the batch: %+v", b)
	}
}

// A filter that fails to evaluate is poison.
func TestMapFailingFilter(t *testing.T) {
	m := defined.Registry(t, `
streams:
  s: {topic: events, timestamp: {path: t, unit: ms}, fields: {u: string, n: int}}
features:
  c: COUNT(1d, s, u, where='n * n * n > 5')
`).NewMapper()
	_, err := m.Map(event(`{"t": NOW, "u": "a", "n": 9223372036854775807}`), 0, &state.Batch{})
	if p := (*record.Poison)(nil); !errors.As(err, &p) || p.Reason != record.BadExpression ||
		p.Error() != "stream s: where n * n * n > 5: the result of a calculation is too large" {
		t.Errorf("a filter that fails: got error %v", err)
	}
}

func TestMapAllocatesNothing(t *testing.T) {
	m := defined.Registry(t, mapperDefinitions).NewMapper()
	b := &state.Batch{}
	rec := event(transaction)
	if n := testing.AllocsPerRun(200, func() {
		b.Reset()
		mustMap(t, m, rec, b)
	}); n != 0 {
		t.Errorf("%v allocations an event, want none", n)
	}
}

func BenchmarkMap(b *testing.B) {
	m := defined.Registry(b, mapperDefinitions).NewMapper()
	batch := &state.Batch{}
	rec := event(transaction)
	b.SetBytes(int64(len(rec.Value)))
	b.ReportAllocs()
	for b.Loop() {
		if len(batch.Updates) > 1000 {
			batch.Reset()
		}
		mustMap(b, m, rec, batch)
	}
}

func BenchmarkDecode(b *testing.B) {
	d := defined.Registry(b, mapperDefinitions).NewDecoder()
	rec := event(transaction)
	b.SetBytes(int64(len(rec.Value)))
	for b.Loop() {
		if _, err := d.Decode(rec); err != nil {
			b.Fatal(err)
		}
	}
}

// FuzzMapper maps arbitrary bytes: they are poison, or give valid mutations, the same ones each time.
func FuzzMapper(f *testing.F) {
	f.Add([]byte(event(transaction).Value), recorded)
	f.Add([]byte(`{"type":"transaction","timestamp":1700000000000,"user_id":"\ud800\u0041","amount":"1e2"}`), int64(-1))
	f.Add([]byte(`{"type":"transaction","timestamp":1e400}`), int64(math.MaxInt64))
	r := defined.Registry(f, mapperDefinitions)
	f.Fuzz(func(t *testing.T, value []byte, timestamp int64) {
		if timestamp < -1 {
			timestamp = -1
		}
		rec := &record.Record{Partition: state.Partition{Topic: "events"}, Timestamp: timestamp, Value: value}
		b, again := &state.Batch{}, &state.Batch{}
		out, err := r.NewMapper().Map(rec, 0, b)
		if err != nil {
			var p *record.Poison
			if !errors.As(err, &p) || !slices.Contains(record.Reasons(), p.Reason) || p.Reason == record.Defect || p.Message == "" || len(b.Mutations)+len(b.Updates) > 0 {
				t.Fatalf("the error %#v is not poison, or came with mutations: %d", err, len(b.Mutations))
			}
			return
		}
		if len(b.Updates) > 0 && out.Stream == "" {
			t.Fatal("there are mutations, but no stream")
		}
		at := 0
		for _, update := range b.Updates {
			if update.From != at || update.To <= at {
				t.Fatalf("an entity has the mutations from %d to %d, want them to begin at %d", update.From, update.To, at)
			}
			at = update.To
		}
		if at != len(b.Mutations) {
			t.Fatalf("%d of %d mutations belong to entities, want all", at, len(b.Mutations))
		}
		if _, err := r.NewMapper().Map(rec, 0, again); err != nil || !slices.Equal(mutations(b), mutations(again)) {
			t.Fatalf("a replay differs: %v", err)
		}
	})
}

func TestSeparateEntities(t *testing.T) {
	var texts [][]byte
	for _, e := range [][]string{{"a", "b|c"}, {"a|b", "c"}, {"a\\", "|b"}, {"a\\|", "b"}} {
		var text []byte
		for i, s := range e {
			text = state.AppendEntity(text, i == 0, str(s))
		}
		for _, other := range texts {
			if bytes.Equal(other, text) {
				t.Errorf("two entities have the text %q", text)
			}
		}
		texts = append(texts, text)
	}
}
