package query

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const comparedDefinitions = `
streams:
  tx:
    topic: t
    timestamp: ts
    fields: {user: string, merchant: {type: string, max_bytes: 50}, shop: string, amount: {type: decimal, scale: 2}, n: int}
features:
  all: COUNT(1d, tx, user, tile=exact)
  here: COUNT(1d, tx, user, where='merchant == event.merchant')
  alike: COUNT(1d, tx, user, where='abs(amount - event.amount) < 0.01')
  here_before: LAST(1d, tx, amount, user, where='merchant == event.merchant', exclude=current)
  beyond: COUNT(1d, tx, user, where='n * n * event.n > 5')
  last_beyond: LAST(1d, tx, amount, user, where='n * n * event.n > 5')
  share: {expr: here / all, default: -1}
`

// comparing holds the log of a user.
type comparing struct {
	testing.TB
	*features.Registry
	log []byte
}

func newComparing(t testing.TB) *comparing {
	return &comparing{t, defined.Registry(t, comparedDefinitions), []byte(state.LogHeader)}
}

const comparedAt = int64(1_700_000_000_000)

// event decodes an event, and appends it to the log.
func (c *comparing) event(fields string, logged bool) *record.Event {
	c.Helper()
	batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	out, err := c.NewMapper().Map(&record.Record{
		Partition: state.Partition{Topic: "t"}, Timestamp: comparedAt, Value: fmt.Appendf(nil, `{"ts":%d,"user":"u",%s}`, comparedAt, fields),
	}, 0, batch)
	if err != nil {
		c.Fatal(err)
	}
	if logged {
		c.log = append(c.log, batch.Mutations[0].Member...)
	}
	return out.Events[0].Clone()
}

func (c *comparing) answer(name string, inHand *record.Event) (a Answer) {
	c.Helper()
	var r Reading
	r.Reset(comparedAt)
	r.SetInHand(inHand)
	r.Want(defined.Feature(c, c.Registry, name), "u", comparedAt)
	if err := r.Read(c.Context(), logReader(c.log)); err != nil {
		c.Fatal(err)
	}
	r.Next(&a)
	return a
}

func TestComparedWithTheEventInHand(t *testing.T) {
	c := newComparing(t)
	long := strings.Repeat("m", 300)
	c.event(`"merchant":"a","amount":1.50`, true)
	c.event(`"merchant":"b","amount":1.51`, true)
	c.event(`"amount":null,"n":0`, true)
	c.event(`"merchant":"`+long+`","amount":-0.01`, true)
	last := c.event(`"merchant":"a","amount":7`, true)
	other := *last
	other.Stream = &record.Stream{Name: "other"}
	for _, test := range []struct {
		feature string
		event   *record.Event
		want    string
	}{
		{"here", last, "2 PRESENT true"},
		{"here_before", last, "1.5 PRESENT true"},
		{"here", c.event(`"merchant":"`+long+`"`, false), "1 PRESENT true"},
		{"here", c.event(`"merchant":"`+long+`m"`, false), "0 NOT_FOUND true"},
		{"here", c.event(`"amount":1`, false), "0 NOT_FOUND true"},
		{"here", nil, " NO_EVENT false"},
		{"here", &other, " NO_EVENT false"},
		{"alike", c.event(`"amount":1.5`, false), "1 PRESENT true"},
		{"alike", c.event(`"amount":92233720368547758.07`, false), "0 NOT_FOUND true"},
		{"here_before", c.event(`"merchant":"z"`, false), " NOT_FOUND true"},
		{"share", last, "0.4 PRESENT true"},
		{"share", nil, " NO_EVENT false"},
		{"all", nil, "5 PRESENT true"},
		{"beyond", c.event(`"n":3`, false), "0 NOT_FOUND true"},
	} {
		a := c.answer(test.feature, test.event)
		if got := fmt.Sprint(string(a.Value.AppendText(nil)), " ", a.Status, " ", a.Exact); got != test.want || a.Capped || a.CompleteSince != state.MinTime {
			t.Errorf("%s is %s, want %s: %+v", test.feature, got, test.want, a)
		}
		if day := int64(86_400_000); a.From <= comparedAt-day-2 || a.To-a.From > day {
			t.Errorf("%s covers %d to %d", test.feature, a.From, a.To)
		}
	}
}

// The points of a timeline would have no event in hand.
func TestNoTimelineCompared(t *testing.T) {
	c := newComparing(t)
	for name, want := range map[string]bool{"all": true, "here": false} {
		if got := HasTimeline(defined.Feature(t, c.Registry, name)); got != want {
			t.Errorf("%s has a timeline: %t", name, got)
		}
	}
}

// An event that cannot be compared, because something is too large, may be one that counts: the answer says that it lacks some,
// also where the newest event decides.
func TestComparedBeyond(t *testing.T) {
	c := newComparing(t)
	c.event(`"amount":1,"n":3`, true)
	c.event(`"amount":2,"n":9223372036854775807`, true)
	event := c.event(`"n":9223372036854775807`, false)
	for name, want := range map[string]string{"beyond": "1 PRESENT", "last_beyond": "1 PRESENT"} {
		if a := c.answer(name, event); fmt.Sprint(string(a.Value.AppendText(nil)), " ", a.Status) != want || !a.Capped || a.Exact {
			t.Errorf("%s: %+v, want %s, capped", name, a, want)
		}
	}
	if a := c.answer("beyond", c.event(`"n":1`, false)); a.Capped || a.Value.Num != 2 {
		t.Errorf("beside a small value: %+v", a)
	}
}

// A log that is damaged is no reason to answer without its events.
func TestComparedOfADamagedLog(t *testing.T) {
	c := newComparing(t)
	event := c.event(`"merchant":"a"`, true)
	c.log[len(c.log)-2] = 0xff // the length of the merchant
	if a := c.answer("here", event); a.Status != Damaged || a.Err == nil || !a.Value.IsNull() {
		t.Errorf("%+v", a)
	}
}

// The events of the log are compared without an allocation for each.
func TestComparingDoesNotAllocate(t *testing.T) {
	c := newComparing(t)
	feature := defined.Feature(t, c.Registry, "here")
	event, with := c.event(`"merchant":"a","amount":1.5`, true), newComparison(feature.Compared)
	r, _, err := state.Log(c.log).Record(0)
	if err != nil {
		t.Fatal(err)
	}
	if !with.begin(feature, event) {
		t.Fatal("the event is not in hand")
	}
	if n := testing.AllocsPerRun(100, func() {
		if holds, err := with.holds(&r); err != nil || !holds {
			t.Fatal(holds, err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkComparing compares one event of a log with the event in hand.
func BenchmarkComparing(b *testing.B) {
	c := newComparing(b)
	event := c.event(`"merchant":"m7","shop":"s","amount":7.25,"n":3`, true)
	r, _, err := state.Log(c.log).Record(0)
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range []string{"here", "alike"} {
		b.Run(name, func(b *testing.B) {
			f := defined.Feature(b, c.Registry, name)
			with := newComparison(f.Compared)
			with.begin(f, event)
			b.ReportAllocs()
			for b.Loop() {
				if holds, err := with.holds(&r); err != nil || !holds {
					b.Fatal(holds, err)
				}
			}
		})
	}
}

// BenchmarkCompared asks about an entity with 500 events in its log: for a count, and for the counts that compare each event
// with the one in hand.
func BenchmarkCompared(b *testing.B) {
	c := newComparing(b)
	for i := range 500 {
		c.event(fmt.Sprintf(`"merchant":"m%d","shop":"s","amount":%d.25,"n":%d`, i%20, i, i), true)
	}
	event := c.event(`"merchant":"m7","amount":7.25`, false)
	for _, name := range []string{"all", "here", "alike"} {
		b.Run(name, func(b *testing.B) {
			f := defined.Feature(b, c.Registry, name)
			var r Reading
			b.ReportAllocs()
			for b.Loop() {
				r.Reset(comparedAt)
				r.SetInHand(event)
				r.Want(f, "u", comparedAt)
				if err := r.Read(b.Context(), logReader(c.log)); err != nil {
					b.Fatal(err)
				}
				var a Answer
				if r.Next(&a); a.Status != Present {
					b.Fatal(a)
				}
			}
		})
	}
}
