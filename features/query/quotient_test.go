package query

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// An average that is defined beside an older sum does not divide the older amounts by the number of newer ones: both of its
// terms are its own. The same is true of ratios, and of categories. A ratio in a log has no value until its condition is
// complete for as long as the log.
func TestIncompleteQuotientsCountTheSameEvents(t *testing.T) {
	const old, changed, young, at = int64(1_532_300_000_000), int64(1_532_400_000_000), int64(1_532_500_000_000), int64(1_532_520_000_000)
	quotients := []string{
		"mean: AVG(7d, tx, amount, user)", "means: AVG(7d, tx, amount, user, per=device)",
		"share: RATIO(7d, tx, user, condition='amount > 5')", "exact_share: RATIO(7d, tx, user, condition='amount > 5', tile=exact)",
		"exact_mean: AVG(7d, tx, amount, user, tile=exact)",
	}
	for _, test := range []struct {
		before []string // features that the earlier definitions had
		want   map[string]string
	}{
		{
			[]string{"total: SUM(7d, tx, amount, user)", "totals: SUM(7d, tx, amount, user, per=device)", "all: COUNT(7d, tx, user)", "last: COUNT(7d, tx, user, tile=exact)"},
			map[string]string{"mean": "10", "means": `{"d":10}`, "share": "1", "exact_share": "null", "exact_mean": "10"},
		},
		{
			[]string{"other: COUNT(7d, tx, device)"},
			map[string]string{"mean": "10", "means": `{"d":10}`, "share": "1", "exact_share": "1", "exact_mean": "10"},
		},
	} {
		before, after := defined.Features(t, test.before...), defined.Features(t, append(test.before, quotients...)...)
		stored := memory.New()
		for _, e := range []struct {
			by     *features.Registry
			time   int64
			amount int
		}{{before, old, 300}, {after, young, 10}} {
			b := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
			rec := record.Record{
				Partition: state.Partition{Topic: "transactions"}, Timestamp: e.time,
				Value: fmt.Appendf(nil, `{"ts":%d,"user":"u","device":"d","amount":%d,"fee":0}`, e.time, e.amount),
			}
			if _, err := e.by.NewMapper().Map(&rec, 0, b); err != nil {
				t.Fatal(err)
			}
			if err := stored.Apply(context.Background(), b); err != nil {
				t.Fatal(err)
			}
		}
		h := &state.History{
			PlanEpochs: []state.PlanEpoch{
				{Topic: "transactions", Version: "before", Last: changed},
				{Topic: "transactions", Version: "after", Last: state.MaxTime},
			},
			Plans: map[string]*state.Plan{"before": before.Plan(), "after": after.Plan()},
		}
		for name, want := range test.want {
			f := defined.Feature(t, after, name)
			var reading Reading
			reading.Reset(at)
			reading.Want(f, "u", at)
			if err := reading.Read(context.Background(), stored); err != nil {
				t.Fatal(err)
			}
			var a Answer
			reading.NextSince(&a, CompletenessOf(f, h))
			if got := string(a.AppendValue(nil)); got != want || a.Status != Incomplete {
				t.Errorf("beside %v, %s is %s with status %s, want %s with status %s", test.before, name, got, a.Status, want, Incomplete)
			}
		}
	}
}

// State that an entity has lost of one term only leaves a quotient without a value.
func TestQuotientOfALossHasNoValue(t *testing.T) {
	const at, hour = int64(1_532_520_000_000), int64(3_600_000)
	f := defined.Features(t, "mean: AVG(7d, tx, amount, user)").Features[0]
	for _, test := range []struct {
		name      string
		lost      []int64 // hours before the moment, by series; 0 for none
		none      bool
		completed bool
	}{
		{"nothing", []int64{0, 0}, false, true},
		{"both alike", []int64{24, 24}, false, false},
		{"the sum", []int64{24, 0}, true, false},
		{"the count", []int64{0, 24}, true, false},
		{"more of the sum", []int64{24, 48}, true, false},
		{"something before the window", []int64{24 * 9, 0}, false, true},
	} {
		var reading Reading
		reading.Reset(at)
		reading.Want(f, "ann", at)
		if err := reading.Read(context.Background(), setReader{}); err != nil {
			t.Fatal(err)
		}
		for i, ago := range test.lost {
			if ago > 0 {
				until := at - ago*hour
				reading.WindowStates()[i].LostUntil = &until
			}
		}
		var a Answer
		reading.Next(&a)
		if a.Value.IsNull() != test.none || (a.Status == Present) != test.completed {
			t.Errorf("%s is lost: the value is %s with status %s, want none: %v, complete: %v", test.name, a.AppendValue(nil), a.Status, test.none, test.completed)
		}
	}
}
