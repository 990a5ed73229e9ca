package query

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// Wider tiles that stand in for those of a feature with a delay have events that it leaves out: the answer says that it is not
// exact.
func TestDelayedStandInsAreNotExact(t *testing.T) {
	const hour, day, midnight = int64(3_600_000), 24 * int64(3_600_000), int64(1_532_476_800_000)
	at := midnight + 18*hour
	for definition, want := range map[string]string{
		"COUNT(calendar day, tx, user, delay=6h)":  "18 exact false",
		"COUNT(tumbling 1d, tx, user, delay=6h)":   "18 exact false",
		"COUNT(calendar day, tx, user, delay=19h)": "0 exact true", // the day ends with the hour of 23:00
		"COUNT(calendar day, tx, user)":            "18 exact true",
	} {
		old, now := defined.Features(t, "wide: COUNT(7d, tx, user)"), defined.Features(t, "wide: COUNT(7d, tx, user)", "f: "+definition)
		stored, last := memory.New(), int64(0)
		for i := range int64(18) { // an event in each hour of the day, at half past
			last = midnight + i*hour + hour/2
			rec := record.Record{
				Partition: state.Partition{Topic: "transactions"}, Offset: i, Timestamp: last,
				Value: fmt.Appendf(nil, `{"ts":%d,"user":"u","device":"d","amount":1,"fee":0}`, last),
			}
			b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			if _, err := old.NewMapper().Map(&rec, 0, b); err != nil {
				t.Fatal(err)
			}
			if err := stored.Apply(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		h := &state.History{
			Plans: map[string]*state.Plan{old.Plan().Version: old.Plan()}, Newest: last, Now: at,
			PlanEpochs: []state.PlanEpoch{{Topic: "transactions", Version: old.Plan().Version, Last: last}},
		}
		bound := state.Bind(now.Plan(), &state.Known{Plans: h.Plans, History: h, Now: last})
		h.Plans[bound.Version] = bound
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: "transactions", Version: bound.Version, Last: state.MaxTime})
		f := defined.Feature(t, now.Keeping(bound, h), "f")
		if f.Series[0].Tile != day {
			t.Fatalf("%s is read in tiles of %d ms, want those of a day", definition, f.Series[0].Tile)
		}
		var reading Reading
		reading.Reset(at)
		reading.Want(f, "u", at)
		if err := reading.Read(t.Context(), stored); err != nil {
			t.Fatal(err)
		}
		var a Answer
		reading.NextSince(&a, CompletenessOf(f, h))
		if got := fmt.Sprintf("%s exact %t", a.AppendValue(nil), a.Exact); got != want {
			t.Errorf("%s is %s, want %s", definition, got, want)
		}
	}
}
