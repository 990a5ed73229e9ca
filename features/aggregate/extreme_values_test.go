package aggregate

import (
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
