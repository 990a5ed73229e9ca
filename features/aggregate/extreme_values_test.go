package aggregate

import (
	"math"
	"testing"

	"github.com/weir-stream/weir/value"
)

// The entropy of a single value is 0, however often it occurs: never a rounding error, let alone a negative one.
func TestEntropyOfOneValueIsZero(t *testing.T) {
	var events []Sample
	for range 1000 {
		events = append(events, Sample{Value: value.Value{Type: value.String, Str: []byte("a")}})
		if r := (entropy{}).Fold(Call{Max: 10}, 0, events); r.Value.Flt != 0 || !r.Found {
			t.Fatalf("of %d events: %+v, want 0", len(events), r)
		}
	}
}

// A result that no float holds is null, which answers state and a default replaces, and not an infinity.
func TestResultsBeyondFloatsAreNull(t *testing.T) {
	huge := func(f float64) Sample { return Sample{Value: value.Value{Type: value.Float, Flt: f}} }
	for _, c := range []struct {
		name   string
		events []Sample
	}{
		{"diff", []Sample{huge(-math.MaxFloat64), huge(math.MaxFloat64)}},
		{"diff", []Sample{huge(math.MaxFloat64), huge(-math.MaxFloat64)}},
		{"exp_decay_sum", []Sample{huge(math.MaxFloat64), huge(math.MaxFloat64)}},
		{"variance", []Sample{huge(1e200), huge(-1e200)}},
		{"stddev_pop", []Sample{huge(-math.MaxFloat64), huge(math.MaxFloat64), huge(0)}},
	} {
		k, _ := Find(c.name, "")
		call := Call{Type: value.Float, Duration: 1000}
		if r := k.Fold(call, 0, c.events); !r.Value.IsNull() || !r.Found {
			t.Errorf("%s: %+v, want null", c.name, r)
		}
		if m, ok := k.(Mergeable); ok {
			if r := m.Merge(call, 0, statesOf(m, call, c.events)); !r.Value.IsNull() || !r.Found {
				t.Errorf("%s of tiles: %+v, want null", c.name, r)
			}
		}
	}
}
