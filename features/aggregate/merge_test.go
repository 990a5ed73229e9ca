package aggregate

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/value"
)

// Merging what single events leave in tiles gives the same result as the fold, for every function.
func TestMergeEqualsFold(t *testing.T) {
	for _, function := range All {
		k, ok := function.(Mergeable)
		if !ok {
			continue
		}
		spec := k.Spec()
		t.Run(spec.Name+spec.Method, func(t *testing.T) {
			types := slices.DeleteFunc(slices.Clone(spec.Types), func(t value.Type) bool { return slices.Contains(spec.LogTypes, t) })
			if types == nil {
				types = []value.Type{value.Null}
			}
			rapid.Check(t, func(t *rapid.T) {
				c := drawCall(t, spec)
				c.Duration = 1
				if c.Members == nil { // which are of that type
					c.Type = rapid.SampledFrom(types).Draw(t, "type of tiles")
				}
				c.Max = rapid.IntRange(1, 30).Draw(t, "max")
				if spec.Method == "last_seen" {
					c.Max = 21 // with more values than that it counts the newest only, and the fold all
				}
				events := rapid.SliceOfN(samples(c), 0, 20).Draw(t, "events")
				slices.SortStableFunc(events, func(a, b Sample) int { return cmp.Compare(a.Time, b.Time) })
				got, want := k.Merge(c, 990, statesOf(k, c, events)), k.Fold(c, 990, events)
				off := got.RelativeError * math.Abs(want.Value.Float64())
				if got.RelativeError > 0 && math.Abs(got.Value.Float64()-want.Value.Float64()) <= off*(1+1e-9) {
					got.Value = want.Value
				}
				if asked := c.Members != nil; written(got, spec, asked) != written(want, spec, asked) || got.Found != want.Found || got.Capped != want.Capped {
					t.Fatalf("merged: %+v, folded: %+v", got, want)
				}
			})
		})
	}
}

// A feature over values last seen counts its own newest max values, even if the series keeps more for others.
func TestLastSeenCountsItsOwnMax(t *testing.T) {
	for _, test := range []struct {
		count, after, counted, uncertain int64
		capped                           bool
	}{
		{2, 0, 2, 0, false}, {3, 0, 3, 0, true}, {4, 0, 3, 0, true},
		{1, 1, 1, 1, false}, {2, 1, 2, 1, true}, {2, 2, 1, 2, true}, {1, 4, 0, 3, true},
	} {
		r := countDistinctLastSeen{}.Merge(Call{Max: 3}, 0, []state.WindowState{{Count: test.count, After: test.after}})
		if r.Value.Num != test.counted || r.Uncertain != test.uncertain || r.Capped != test.capped || r.Found != (test.counted > 0) {
			t.Errorf("%d values and %d later ones: counts %d, %d uncertain, capped %v; want %+v", test.count, test.after, r.Value.Num, r.Uncertain, r.Capped, test)
		}
	}
}

// Merging the state of several entities equals the fold over the events of all of them.
func TestMergeOfEntitiesEqualsFold(t *testing.T) {
	for _, function := range All {
		k, ok := function.(Mergeable)
		if !ok || !function.Spec().MultiHop {
			continue
		}
		spec := k.Spec()
		t.Run(spec.Name+spec.Method, func(t *testing.T) {
			types := spec.Types
			if types == nil {
				types = []value.Type{value.Null}
			}
			rapid.Check(t, func(t *rapid.T) {
				c := Call{Type: rapid.SampledFrom(types).Draw(t, "type"), Scale: 2, Max: 1 << 30}
				var all []Sample
				held := make([][]state.WindowState, len(k.Measures(c))) // by series
				for range rapid.IntRange(0, 4).Draw(t, "entities") {
					events := rapid.SliceOfN(samples(c), 0, 8).Draw(t, "events")
					all = append(all, events...)
					for i, windowState := range statesOf(k, c, events) {
						held[i] = append(held[i], windowState)
					}
				}
				united := make([]state.WindowState, len(held))
				for i := range held {
					united[i] = state.Unite(held[i])
				}
				got, want := k.Merge(c, 0, united), k.Fold(c, 0, all)
				if string(got.Value.AppendText(nil)) != string(want.Value.AppendText(nil)) || got.Found != want.Found {
					t.Fatalf("merged: %+v, folded: %+v", got, want)
				}
			})
		})
	}
}

func samples(c Call) *rapid.Generator[Sample] {
	return rapid.Custom(func(t *rapid.T) Sample {
		n := rapid.Int64Range(-50, 50).Draw(t, "n")
		v := valueOf(c, n)
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 || c.Type == value.Null {
			v = value.Value{}
		}
		return Sample{Time: rapid.Int64Range(0, 1000).Draw(t, "time"), Value: v, Holds: rapid.Bool().Draw(t, "holds")}
	})
}

// exactFilter is a filter without false positives.
type exactFilter map[string]bool

func (f exactFilter) Has(text []byte) bool { return f[string(text)] }

func (exactFilter) Full() bool { return false }

func (f exactFilter) FalsePositiveRate() float64 { return 0 }

// statesOf returns the window states of a function's series after events, in tiles of one millisecond.
func statesOf(k Mergeable, c Call, events []Sample) []state.WindowState {
	var out []state.WindowState
	for _, m := range k.Measures(c) {
		keyed, ok := k.(Keyed)
		if !ok {
			out = append(out, sliceOf(m, c, events))
			continue
		}
		appendKey := keyed.Keys(c).Append
		if appendKey == nil {
			appendKey = func(dst []byte, v value.Value) []byte { return v.AppendText(dst) }
		}
		of := map[string][]Sample{}
		for _, e := range events {
			if !e.Value.IsNull() {
				key := string(appendKey(nil, e.Value))
				of[key] = append(of[key], e)
			}
		}
		var s state.WindowState
		for _, key := range slices.Sorted(maps.Keys(of)) {
			s.Groups = append(s.Groups, state.Group{Key: key, WindowState: sliceOf(m, c, of[key])})
		}
		out = append(out, s)
	}
	return out
}

// sliceOf returns the window state of one series. It is exact where real states estimate.
func sliceOf(m state.Measure, c Call, events []Sample) state.WindowState {
	series := &state.Series{Measure: m, Type: c.Type, Scale: c.Scale, Tile: 1, Max: math.MaxInt32}
	if m.OfTimes() {
		series.Type = value.Timestamp
	}
	held, members := packed.New(series), map[string]bool{}
	for _, e := range events {
		if e.Value.IsNull() && !m.OfEvents() || m.OfCondition() && !e.Holds {
			continue
		}
		mutation := state.Mutation{Series: series, Tile: e.Time, Num: m.Num(state.Input{Time: e.Time, Begin: e.Time, Value: &e.Value}), Text: new(state.Text)}
		if m.Layout() == state.MomentTiles {
			mutation.Tile = 0 // the order of adding changes the last digits
		}
		switch m.Member() {
		case state.TextMember:
			mutation.Member = e.Value.AppendText(nil)
		case state.ValueMember:
			mutation.Member = state.AppendValue(nil, e.Value)
		}
		members[string(mutation.Member)] = true
		held.Apply(&mutation)
	}
	s := held.Read(&state.Read{Series: series, First: math.MinInt64, Last: math.MaxInt64})
	switch m.Layout() {
	case state.Sketches:
		s.Count, s.StandardError = int64(len(members)), 0
	case state.Filters:
		if len(members) > 0 {
			s.Filter = exactFilter(members)
		}
	}
	return s
}

// Variances do not depend on how values are grouped: those of ints and decimals to the last bit, whatever their size,
// those of floats up to the error that they state, even if the spread is small beside the values.
func TestVariancesMerge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{Type: rapid.SampledFrom(numeric).Draw(t, "type")}
		if c.Type == value.Decimal {
			c.Scale = rapid.Uint8Range(0, value.MaxScale).Draw(t, "scale")
		}
		far := rapid.SampledFrom([]int64{0, 1e3, -1e6, 1e12, 4e18, math.MinInt64 + 1000}).Draw(t, "far")
		function := rapid.SampledFrom([]deviation{{}, {sample: true}, {root: true}, {sample: true, root: true}}).Draw(t, "function")
		parts := make([]state.Moments, rapid.IntRange(1, 6).Draw(t, "parts"))
		var events []Sample
		for _, n := range rapid.SliceOfN(rapid.Int64Range(-1000, 1000), 0, 40).Draw(t, "values") {
			v := value.Value{Type: c.Type, Scale: c.Scale, Num: far + n}
			if c.Type == value.Float {
				v.Num, v.Flt = 0, float64(far)+float64(n)/8
			}
			i := rapid.IntRange(0, len(parts)-1).Draw(t, "part")
			parts[i] = parts[i].Add(state.MomentsOf(&v))
			events = append(events, Sample{Value: v})
		}
		var m state.Moments
		for _, p := range parts {
			m = m.Add(p)
		}
		less := 0
		if function.sample {
			less = 1
		}
		merged, folded, want := function.of(c, &m), function.Fold(c, 0, events), spread(events, less, function.root)
		for _, r := range []Result{merged, folded} {
			got := textOf(r.Value)
			if got == want && r.Found == (len(events) > 0) {
				continue
			}
			x, y := r.Value.Flt, parseFloat(want)
			if c.Type != value.Float || r.Value.IsNull() || math.Abs(x-y) > max(r.RelativeError, negligible)*y {
				t.Fatalf("%d values at %d: got %s with an error of %v, want %s", len(events), far, got, r.RelativeError, want)
			}
		}
	})
}

func parseFloat(text string) float64 {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.NaN()
	}
	return f
}
