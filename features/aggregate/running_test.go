package aggregate

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// A running value equals the Fold of the window's events at each step, to the last bit.
func TestRunningEqualsFold(t *testing.T) {
	found := 0
	for _, k := range All {
		incremental, ok := k.(Incremental)
		if !ok {
			continue
		}
		found++
		t.Run(k.Spec().Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := drawCall(t, k.Spec())
				c.Members = nil // questions with members are not answered this way
				events := rapid.SliceOfN(samples(c), 0, 40).Draw(t, "events")
				slices.SortStableFunc(events, func(a, b Sample) int { return int(a.Time - b.Time) })
				for i := range events {
					if v := &events[i].Value; v.Type == value.Float {
						v.Flt *= 0.1 // so that another order of adding would show
					}
				}
				running, from, to := incremental.Running(c), 0, 0
				for from < len(events) {
					if to < len(events) && (from == to || rapid.Bool().Draw(t, "on")) {
						given := events[to]
						given.Value.Str = slices.Clone(given.Value.Str)
						running.Add(&given)
						clear(given.Value.Str) // the log's memory is reused
						to++
					} else {
						running.Remove(&events[from])
						from++
					}
					var got Result
					got.Found, got.Capped = running.Result(&got.Value)
					if want := k.Fold(c, 1000, events[from:to]); !reflect.DeepEqual(got, want) {
						t.Fatalf("events %d to %d: got %+v, want %+v", from, to, got, want)
					}
				}
			})
		})
	}
	if found < 7 {
		t.Errorf("%d functions are incremental, want at least 7", found)
	}
}

// Sums of floats do not depend on the order of events.
func TestFloatSumsHaveNoOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var events []Sample
		for _, f := range rapid.SliceOfN(rapid.Float64Range(-1e20, 1e20), 1, 20).Draw(t, "floats") {
			events = append(events, Sample{Value: float(f)})
		}
		for _, k := range []Function{sum{}, avg{}, expDecaySum{}} {
			c := Call{Type: value.Float, Duration: 1}
			want := k.Fold(c, 0, events)
			if got := k.Fold(c, 0, rapid.Permutation(events).Draw(t, "order")); got.Value.Flt != want.Value.Flt {
				t.Fatalf("%s is %v, in another order %v", k.Spec().Name, want.Value.Flt, got.Value.Flt)
			}
		}
	})
}

// A value and its opposite hide nothing of what is summed in a log.
func TestFloatSumsHideNothing(t *testing.T) {
	events := []Sample{{Value: float(1e18)}}
	for range 100 {
		events = append(events, Sample{Value: float(60)})
	}
	events = append(events, Sample{Value: float(-1e18)})
	for _, k := range []Function{sum{}, expDecaySum{}} {
		if got := k.Fold(Call{Type: value.Float, Duration: 1}, 0, events).Value.Flt; got != 6000 {
			t.Errorf("%s is %v, want 6000", k.Spec().Name, got)
		}
	}
}
