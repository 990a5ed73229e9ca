package model

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const definitions = `
streams:
  pay:
    topic: pay
    timestamp: {path: t, unit: s}
    fields:
      user: {type: string, required: true}
      device: string
      amount: {type: decimal, scale: 2}
      status: string
features:
  count_1h: COUNT(1h, pay, user)
  paid_1h: SUM(1h, pay, amount, user, where='status == "ok"')
  avg_1h: AVG(1h, pay, amount, user)
  max_1h: MAX(1h, pay, amount, user)
  count_ever: COUNT(lifetime, pay, user)
  pair_1h: COUNT(1h, pay, user, device)
  devices_1h: COUNT_DISTINCT(1h, pay, user, device)
  recent_1h: COUNT_DISTINCT(1h, pay, user, device, method=last_seen, max=2)
`

// recorded is a full hour, in seconds.
const recorded = int64(1_700_002_800)

type fixture struct {
	*testing.T
	registry *features.Registry
	model    *Model
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := defined.Registry(t, definitions)
	return &fixture{t, r, New(r)}
}

// apply applies events given as seconds after recorded and members.
func (f *fixture) apply(after int64, members string) {
	f.Helper()
	err := f.model.Apply(record.Record{
		Partition: state.Partition{Topic: "pay"}, Timestamp: (recorded + max(after, 0)) * 1000,
		Value: fmt.Appendf(nil, `{"t":%d,%s}`, recorded+after, members),
	})
	if err != nil {
		f.Fatal(err)
	}
}

// want checks the answers for an entity, given seconds after recorded.
func (f *fixture) want(entity string, after int64, want map[string]string) {
	f.Helper()
	for name, text := range want {
		feature, _ := f.registry.Feature(name)
		r := f.model.Answer(feature, entity, (recorded+after)*1000)
		got := string(r.Value.AppendText(nil))
		if !r.Found {
			got += " nothing"
		}
		if r.Capped {
			got += " capped"
		}
		if r.Uncertain > 0 {
			got += fmt.Sprint(" +", r.Uncertain)
		}
		if got != text {
			f.Errorf("%s of %q at +%d: %q, want %q", name, entity, after, got, text)
		}
	}
}

func TestAnswer(t *testing.T) {
	f := newFixture(t)
	f.apply(0, `"user":"a","device":"d1","amount":1.10,"status":"ok"`)
	f.apply(60, `"user":"a","device":"d2","amount":2.20,"status":"no"`)
	f.apply(61, `"user":"a"`)
	f.apply(62, `"user":"b","device":"d1","amount":9.99,"status":"ok"`)
	f.want("a", 62, map[string]string{
		"count_1h": "3", "paid_1h": "1.1", "avg_1h": "1.65", "max_1h": "2.2", "count_ever": "3", "devices_1h": "2",
	})
	f.want("a", -60, map[string]string{"count_1h": "0 nothing", "max_1h": " nothing", "count_ever": "3"})
	f.want("c", 62, map[string]string{"count_1h": "0 nothing", "avg_1h": " nothing", "recent_1h": "0 nothing"})
	f.want("a|d1", 62, map[string]string{"pair_1h": "1"})
	// The window begins with a full minute.
	f.want("a", 3599, map[string]string{"count_1h": "3"})
	f.want("a", 3600, map[string]string{"count_1h": "2"})
	f.want("a", 3659, map[string]string{"count_1h": "2"})
	f.want("a", 3660, map[string]string{"count_1h": "0 nothing", "count_ever": "3"})
}

func TestEntities(t *testing.T) {
	f := newFixture(t)
	f.apply(0, `"user":"b|","device":"d"`)
	f.apply(0, `"user":"a"`)
	for name, want := range map[string][]string{"count_1h": {"a", `b\|`}, "pair_1h": {`b\||d`}, "paid_1h": nil} {
		feature, _ := f.registry.Feature(name)
		if got := f.model.Entities(feature); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Events that are late for a feature, by the record's time, do not count in its answers.
func TestLate(t *testing.T) {
	f := newFixture(t)
	feature, _ := f.registry.Feature("count_1h")
	keep := feature.Series[0].Keep / 1000
	f.apply(-keep, `"user":"a"`)
	f.apply(-keep-1, `"user":"a"`)
	f.want("a", -keep, map[string]string{"count_1h": "1", "count_ever": "2"})
}

func TestLastSeen(t *testing.T) {
	f := newFixture(t)
	for i, device := range []string{"d1", "d3", "d2", "d1"} {
		f.apply(int64(i), fmt.Sprintf(`"user":"a","device":%q`, device))
	}
	// d1 and d2 are kept because they were seen last.
	f.want("a", 3, map[string]string{"recent_1h": "2 capped"})
	f.want("a", 2, map[string]string{"recent_1h": "1 capped +1"})
	f.want("a", 1, map[string]string{"recent_1h": " capped +2"})
	// The left edge is exact, and open.
	f.want("a", 3601, map[string]string{"recent_1h": "2 capped"})
	f.want("a", 3602, map[string]string{"recent_1h": "1"})
	f.want("a", 3603, map[string]string{"recent_1h": "0 nothing"})
	// Values seen before those that are kept do not count.
	f.apply(3, `"user":"a","device":"d3"`)
	f.apply(2, `"user":"a","device":"d9"`)
	f.want("a", 3, map[string]string{"recent_1h": "2 capped"})
	f.want("a", 2, map[string]string{"recent_1h": " capped +2"})
}

func TestPoisonIsNotCounted(t *testing.T) {
	f := newFixture(t)
	err := f.model.Apply(record.Record{Partition: state.Partition{Topic: "pay"}, Value: []byte(`{"user":1}`)})
	if err == nil || !strings.Contains(err.Error(), "the event has no timestamp") {
		t.Errorf("got error %v, want that of a missing timestamp", err)
	}
	f.want("a", 0, map[string]string{"count_ever": "0 nothing"})
}

// A filter that fails to evaluate makes the event poison for all features, as in the mapper.
func TestFailingFilter(t *testing.T) {
	r := defined.Registry(t, `
streams:
  s: {topic: s, timestamp: {path: t, unit: ms}, fields: {u: string, n: int}}
features:
  all: COUNT(1d, s, u)
  some: COUNT(1d, s, u, where='n * n * n > 5')
`)
	m, mapper := New(r), r.NewMapper()
	for value, want := range map[string]bool{
		`{"t":0,"u":"a","n":9223372036854775807}`: false, `{"t":0,"u":"a","n":3}`: true, `{"t":0,"u":"a"}`: true,
	} {
		rec := record.Record{Partition: state.Partition{Topic: "s"}, Value: []byte(value)}
		_, mapErr := mapper.Map(&rec, 0, &state.Batch{})
		if err := m.Apply(rec); (err == nil) != want || (mapErr == nil) != want {
			t.Errorf("%s: the model has the error %v, the mapper %v", value, err, mapErr)
		}
	}
	for name, want := range map[string]int64{"all": 2, "some": 1} {
		f, _ := r.Feature(name)
		if got := m.Answer(f, "a", 0).Value.Num; got != want {
			t.Errorf("%s: got %d, want %d", name, got, want)
		}
	}
}

// Model and mapper agree on which events count: the sums of the counters' mutations equal the
// model's lifetime counts.
func TestMapperAgrees(t *testing.T) {
	r, err := definition.Load("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	m, mapper, b := New(r), r.NewMapper(), &state.Batch{}
	g := generate.New(5, generate.Options{
		Users: 200, Spacing: 2 * time.Minute, Logins: 0.4, Nulls: 0.05, OutOfOrder: 0.1, Late: 0.1, Duplicates: 0.02, Poison: 0.05,
	})
	mutations := map[string]int{} // by series and entity
	for i := range 20_000 {
		e := g.Next()
		rec := record.Record{Partition: state.Partition{Topic: e.Topic}, Offset: int64(i), Timestamp: e.Timestamp, Value: e.Value}
		b.Reset()
		_, mapErr := mapper.Map(&rec, 0, b)
		if err := m.Apply(rec); (err == nil) != (mapErr == nil) {
			t.Fatalf("the model has the error %v, the mapper %v", err, mapErr)
		}
		for _, update := range b.Updates {
			for _, m := range b.Mutations[update.From:update.To] {
				mutations[m.Series.ID+" "+string(update.Entity)]++
			}
		}
	}
	for _, f := range r.Features {
		if len(f.Parts()) > 0 {
			continue // events write nothing for it
		}
		a := m.answers[f]
		entities := m.Entities(f)
		if len(entities) < 20 {
			t.Errorf("%s: %d entities, want at least 20", f.Name, len(entities))
		}
		for _, entity := range entities {
			want := 0
			for _, n := range a.events[entity] {
				if a.field < 0 || !a.sample(n).Value.IsNull() {
					want++
				}
			}
			if got := mutations[f.Series[0].ID+" "+entity]; got != want {
				t.Fatalf("%s of %s: %d mutations, want %d", f.Name, entity, got, want)
			}
		}
	}
}

func BenchmarkModel(b *testing.B) {
	r, err := definition.Load("../../config/features")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m, g := New(r), generate.New(5, generate.Options{Users: 10_000, Spacing: 10 * time.Second, Logins: 0.3})
		var last int64
		for range 200_000 {
			e := g.Next()
			last = e.Timestamp
			if err := m.Apply(record.Record{Partition: state.Partition{Topic: e.Topic}, Timestamp: e.Timestamp, Value: e.Value}); err != nil {
				b.Fatal(err)
			}
		}
		answers := 0
		for _, f := range r.Features {
			for _, entity := range m.Entities(f) {
				if m.Answer(f, entity, last).Found {
					answers++
				}
			}
		}
		b.ReportMetric(float64(answers), "found")
	}
}
