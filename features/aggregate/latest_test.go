package aggregate

import (
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// If the last events of a window settle a value, it is that of all its events.
func TestLatest(t *testing.T) {
	found := 0
	for _, k := range All {
		latest, ok := k.(Latest)
		if !ok {
			continue
		}
		found++
		t.Run(k.Spec().Name, func(t *testing.T) {
			settled := 0 // by fewer events
			rapid.Check(t, func(t *rapid.T) {
				c := drawCall(t, k.Spec())
				events := rapid.SliceOfN(samples(c), 0, 20).Draw(t, "events")
				slices.SortStableFunc(events, func(a, b Sample) int { return int(a.Time - b.Time) })
				all := k.Fold(c, 1000, events)
				for from := range events {
					if !latest.Settled(c, events[from:]) {
						break
					}
					settled += min(from, 1)
					if got := k.Fold(c, 1000, events[from:]); !reflect.DeepEqual(got, all) {
						t.Fatalf("from event %d on it is %+v, of all %+v", from, got, all)
					}
				}
			})
			if settled == 0 {
				t.Error("no value was settled by the last events")
			}
		})
	}
	if found != 10 {
		t.Errorf("%d functions are of the latest events, want 10", found)
	}
}
