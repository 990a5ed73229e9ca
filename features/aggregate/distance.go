package aggregate

import (
	"time"

	"github.com/weir-stream/weir/value"
)

// distance is the distance between the latest two locations, and speed the speed that was needed to
// get from one to the other.
type (
	distance struct{}
	speed    struct{}
)

func (distance) Spec() Spec {
	return Spec{
		Name: "distance", Title: "distance between the two latest locations along the great circle, in km",
		Note:  "Null if there is only one. The Earth is treated as a sphere; the error is 0.5% at most.",
		Types: []value.Type{value.Location}, Exact: true,
		Result: value.Float, Example: "DISTANCE(7d, transaction, place, user)",
	}
}

func (speed) Spec() Spec {
	return Spec{
		Name: "speed", Title: "speed between the two latest locations, in km/h",
		Note:  "Null if there is only one. Locations with the same time count as one millisecond apart, so two distant places at once are impossible travel too.",
		Types: []value.Type{value.Location}, Exact: true,
		Result: value.Float, Example: "SPEED(7d, transaction, place, user)",
	}
}

func (distance) Fold(_ Call, _ int64, events []Sample) Result {
	newer, older, found := lastTwo(events)
	if older.Value.IsNull() {
		return Result{Found: found}
	}
	return Result{Value: float(value.Distance(older.Value, newer.Value)), Found: true}
}

func (speed) Fold(_ Call, _ int64, events []Sample) Result {
	newer, older, found := lastTwo(events)
	if older.Value.IsNull() {
		return Result{Found: found}
	}
	hours := float64(max(1, newer.Time-older.Time)) / float64(time.Hour.Milliseconds())
	return Result{Value: float(value.Distance(older.Value, newer.Value) / hours), Found: true}
}

// Settled implements Latest.
func (distance) Settled(_ Call, events []Sample) bool { return hasValues(events, 2) }

// Settled implements Latest.
func (speed) Settled(_ Call, events []Sample) bool { return hasValues(events, 2) }

// lastTwo returns the latest two events with a value; found reports whether there are any.
func lastTwo(events []Sample) (newer, older Sample, found bool) {
	for _, e := range events {
		if !e.Value.IsNull() {
			newer, older, found = e, newer, true
		}
	}
	return newer, older, found
}
