package features_test

import (
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// A feature of the event in hand keeps nothing: the plan stays the same, so there is nothing to fill.
func TestEventInHandIsNotPartOfThePlan(t *testing.T) {
	const average = "average: AVG(7d, tx, amount, user)"
	without := defined.Features(t, average)
	with := defined.Features(t, average, "times: {expr: event.amount / average, stream: tx}", "above: {expr: times > 2}")
	if a, b := without.Plan().Version, with.Plan().Version; a != b {
		t.Errorf("the plan changes from %s to %s", a, b)
	}
	f, _ := with.Feature("above")
	if f.InHand == nil || f.InHand.Name != "tx" || len(f.OfEvent()) != 1 || len(f.Retained()) != len(with.Features[1].Retained()) {
		t.Errorf("above reads the event of %+v, fields %v", f.InHand, f.OfEvent())
	}
	if with.Version() == without.Version() {
		t.Error("the definitions have the same version")
	}
}
