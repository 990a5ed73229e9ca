package storetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

// pendingDefinitions returns those of the conformance test, with the functions and types that only the log can answer.
func pendingDefinitions() string {
	var d strings.Builder
	d.WriteString(strings.Replace(conformanceDefinitions(), "bool: bool\n", "bool: bool\n      location: location\n", 1))
	given := map[string]string{
		"k": "3", "n": "1", "p": "0.3", "half_life": "4s", "unit": "2s", "bins": "[-2, 1, 3]", "condition": "'int > 1'",
		"error": "0.02", "fp": "0.01", "current": "counted",
	}
	windows := []string{
		"10s", "1d, keep=2d, bounds='[]'", "7d, delay=1d", "lifetime", "calendar week tz Europe/Berlin, keep=2d", "tumbling 6h, keep=1d",
		"fixed 1h, keep=1d", "session 20m, keep=1d, exclude=current", "last 3, exclude=current_time", "rolling 1d last 4, keep=1d",
	}
	for i, k := range aggregate.All {
		spec := k.Spec()
		types := spec.LogTypes
		if _, ok := k.(aggregate.Mergeable); !ok {
			types = spec.Types
			if types == nil {
				types = []value.Type{value.Null}
			}
		}
		for _, t := range types {
			for j, w := range windows {
				size, options, _ := strings.Cut(w, ",")
				arguments := []string{size, "event", "user"}
				switch {
				case spec.Types == nil:
				case spec.FieldLast:
					arguments = append(arguments, t.String())
				default:
					arguments = []string{size, "event", t.String(), "user"}
				}
				if options != "" {
					arguments = append(arguments, options)
				}
				for _, p := range spec.Parameters {
					arguments = append(arguments, p.Name+"="+given[p.Name])
				}
				fmt.Fprintf(&d, "  l%d_%s_%d: %s(%s)\n", i, t, j, spec.Name, strings.Join(arguments, ", "))
			}
		}
	}
	d.WriteString("  stored: seen(7d, event, user, string)\n  stored_log: seen(7d, event, user, string, tile=exact)\n")
	d.WriteString("  through: count(7d, event, SET(7d, event, user, string))\n")
	d.WriteString("  derived: {expr: through / largest, default: 0}\n  largest: max(7d, event, int, user)\n")
	return d.String()
}

// overlaid reads as if pending events had been applied.
type overlaid struct {
	store.Reader
	pending *state.Batch
}

func (s overlaid) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, s.pending)
}

// ask asks a store for all features of their entities, each at its moment.
func ask(t testing.TB, s store.Reader, pending *state.Batch, asked []asking, now int64) []query.Answer {
	t.Helper()
	var reading query.Reading
	reading.Reset(now)
	for _, a := range asked {
		reading.Want(a.feature, a.entity, a.at)
	}
	var from query.Reader = s
	if pending != nil {
		from = overlaid{s, pending}
	}
	if err := reading.Read(context.Background(), from); err != nil {
		t.Fatal(err)
	}
	answers := make([]query.Answer, len(asked))
	for i := range asked {
		reading.Next(&answers[i])
	}
	return answers
}

// compareAnswers reports which answers differ.
func compareAnswers(t testing.TB, asked []asking, want, got []query.Answer, what string) {
	t.Helper()
	for i, a := range asked {
		if !reflect.DeepEqual(want[i], got[i]) {
			t.Errorf("%s: %s of %q at %d (-want +got):\n%s", what, a.feature.Definition, a.entity, a.at, cmp.Diff(want[i], got[i], cmp.Exporter(func(reflect.Type) bool { return true })))
		}
	}
}

// testPending checks, for every function and window, that questions with pending events have the same answers as after
// the events are applied, and change nothing.
func testPending(t *testing.T, open func() State) {
	registry := parse(t, pendingDefinitions())
	moved := map[aggregate.Function]int{}
	for seed := range uint64(testkit.Trials(2)) {
		c := newConformance(t, open(), registry, rand.New(rand.NewPCG(seed, 12)))
		for range 8 {
			c.applyRecords(c.records(c.random.IntN(40))...)
			for function, n := range c.pend() {
				moved[function] += n
			}
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	for _, function := range aggregate.All {
		if moved[function] < 10 {
			t.Errorf("pending events changed %d answers of %s, want at least 10", moved[function], function.Spec().Name)
		}
	}
}

// records makes the next records.
func (c *conformance) records(n int) []record.Record {
	list := make([]record.Record, n)
	for i := range list {
		value := c.event()
		where := fmt.Sprintf(`,"location":{"lat":%d,"lon":%d}}`, c.random.IntN(90), c.random.IntN(180))
		list[i] = record.Record{Partition: transactions, Timestamp: c.now, Value: append(value[:len(value)-1], where...)}
	}
	return list
}

// applyRecords applies records as one batch.
func (c *conformance) applyRecords(records ...record.Record) {
	c.Helper()
	b := c.begin()
	for _, r := range records {
		r.Offset = int64(len(c.written))
		c.written = append(c.written, r)
		if _, err := c.mapper.Map(&r, 0, b); err != nil {
			c.Fatal(err)
		}
		b.Ranges[0].To = r.Offset + 1
	}
	c.apply(b)
}

// pend asks with one or two pending events, applies them, and asks again. It returns how many answers of each function
// they changed.
func (c *conformance) pend() map[aggregate.Function]int {
	c.Helper()
	moved := map[aggregate.Function]int{}
	records := c.records(1 + c.random.IntN(2))
	pending, decoder := &state.Batch{}, c.registry.NewDecoder()
	var asked []asking
	for i := range records {
		if _, err := c.mapper.Map(&records[i], 0, pending); err != nil {
			c.Fatal(err)
		}
		events, err := decoder.Decode(&records[i])
		if err != nil {
			c.Fatal(err)
		}
		for _, f := range c.registry.Features {
			other := strings.TrimPrefix(`0|u\|2`, strings.Repeat("0|", 2-len(f.By)))
			entity, ok := events[0].Entity(nil, f.By)
			for _, at := range []int64{events[0].Time, c.now} {
				at = max(at, c.now-f.Keep.Milliseconds())
				asked = append(asked, asking{feature: f, entity: other, at: at})
				if ok {
					asked = append(asked, asking{feature: f, entity: string(entity), at: at})
				}
			}
		}
	}
	before := ask(c, c.state, nil, asked, c.now)
	thought := ask(c, c.state, pending, asked, c.now)
	compareAnswers(c, asked, before, ask(c, c.state, nil, asked, c.now), "the store was changed")
	c.applyRecords(records...)
	after := ask(c, c.state, nil, asked, c.now)
	for i := range asked {
		if asked[i].feature.BeforeCurrent() {
			after[i] = before[i]
		}
	}
	compareAnswers(c, asked, after, thought, "with pending events")
	for i := range asked {
		if !reflect.DeepEqual(before[i], after[i]) {
			moved[asked[i].feature.Function]++
		}
	}
	return moved
}
