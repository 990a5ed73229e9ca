package features_test

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// No event is later than state can hold, although nothing else limits that of a record that is not of a topic.
func TestMapLastEventTime(t *testing.T) {
	r := defined.Registry(t, "streams:\n  s: {topic: events, timestamp: t, fields: {a: string}}\nfeatures:\n  f: LAST_K(lifetime, s, a, a, k=1)\n")
	for at, want := range map[int64]string{
		state.LastEventTime:     "<nil>",
		state.LastEventTime + 1: "stream s: t: the event is of the year 6429; state holds events up to October 6429",
		253_399_708_799_999:     "stream s: t: the event is of the year 9999; state holds events up to October 6429",
	} {
		rec, b := event(fmt.Sprintf(`{"t":%d,"a":"x"}`, at)), state.Batch{Ranges: make([]state.PartitionRange, 1)}
		rec.Timestamp = record.NoTime
		_, err := r.NewMapper().Map(rec, 0, &b)
		if applied := len(b.Updates) > 0; fmt.Sprint(err) != want || applied != (err == nil) {
			t.Errorf("%d: %v, applied: %v; want %s", at, err, applied, want)
		}
	}
}
