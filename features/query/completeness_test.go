package query

import (
	"context"
	"fmt"
	"maps"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// setReader answers sets with members, and everything else with one event.
type setReader struct{ members []string }

func (r setReader) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	read := make([]state.WindowState, len(reads))
	for i := range reads {
		if reads[i].Series.Measure == state.Distinct {
			read[i].Members = r.members
		} else {
			read[i].Buckets = []state.Bucket{{Tile: reads[i].Last, Value: value.Value{Type: value.Int, Num: 1}}}
		}
	}
	return read, nil
}

// historyWithout returns a history of two plans: up to a record's timestamp one that lacks what the feature young
// needs, if any, and since then the registry's plan.
func historyWithout(r *features.Registry, young *features.Feature, until int64) *state.History {
	before := &state.Plan{Version: "before", Retained: maps.Clone(r.Plan().Retained)}
	if young != nil {
		for _, retained := range young.Retained() {
			delete(before.Retained, retained.Key)
		}
	}
	return &state.History{
		PlanEpochs: []state.PlanEpoch{
			{Topic: "transactions", Version: "before", Last: until},
			{Topic: "transactions", Version: r.Plan().Version, Last: state.MaxTime},
		},
		Plans: map[string]*state.Plan{"before": before, r.Plan().Version: r.Plan()},
	}
}

// A feature with parts is complete when the window of each part is: a short window does not depend on what a long one
// lacks, or vice versa.
func TestCompletenessPerPart(t *testing.T) {
	const at, hour = int64(1_532_520_000_000), int64(3_600_000) // noon
	r := defined.Features(t,
		"short: COUNT(1h, tx, user)", "long: COUNT(7d, tx, user)", "share: {expr: short / long, default: 0}",
		"list: SET(1h, tx, user, device)",
		"through: COUNT(7d, tx, device, through=list)", "there: COUNT(1h, tx, SET(30d, tx, user, device))",
		"both: {expr: share + through, default: 0}")
	for name, test := range map[string]struct {
		feature string
		young   string // the part that only the second plan kept
		since   int64  // hours before the moment, since when
		members bool   // the list is not empty
		want    bool   // the answer is complete
	}{
		"neither is young":                      {"share", "", 0, true, true},
		"the short one is young":                {"share", "short", 3, true, true},
		"the short one is too young":            {"share", "short", 0, true, false},
		"the long one is too young":             {"share", "long", 24, true, false},
		"the long one is old enough":            {"share", "long", 9 * 24, true, true},
		"the list is young":                     {"through", "list", 3, true, true},
		"the list is too young":                 {"through", "list", 0, true, false},
		"the members' feature is too young":     {"through", "device_7d", 24, true, false},
		"that is all the same to no members":    {"through", "device_7d", 24, false, true},
		"a long list is too young":              {"there", "device_30d", 24, true, false},
		"a long list is too young and empty":    {"there", "device_30d", 24, false, false},
		"a part of a part is young":             {"both", "short", 3, true, true},
		"a part of a part is too young":         {"both", "list", 0, true, false},
		"the longest of all parts is too young": {"both", "device_7d", 24, true, false},
	} {
		f := defined.Feature(t, r, test.feature)
		kept := map[string]*features.Feature{
			"short": defined.Feature(t, r, "short"), "long": defined.Feature(t, r, "long"), "list": defined.Feature(t, r, "list"),
			"device_7d": defined.Feature(t, r, "through").Basis.(*features.MultiHop).Each, "device_30d": defined.Feature(t, r, "there").Basis.(*features.MultiHop).Set,
		}
		h := historyWithout(r, kept[test.young], at-test.since*hour)
		reader := setReader{}
		if test.members {
			reader.members = []string{"d1"}
		}
		answer := func(h *state.History) (a Answer) {
			var reading Reading
			reading.Reset(at)
			reading.Want(f, "ann", at)
			if err := reading.Read(context.Background(), reader); err != nil {
				t.Fatal(err)
			}
			reading.NextSince(&a, CompletenessOf(f, h))
			return a
		}
		a := answer(h)
		if whole := a.Status != Incomplete; whole != test.want || a.Exact != test.want || (a.CompleteSince <= a.From) != test.want {
			t.Errorf("%s: %s is %s, exact %v, from %d, complete since %d; want complete %v", name, f.Name, a.Status, a.Exact, a.From-at, a.CompleteSince-at, test.want)
		}
		checkFilled(t, name, answer, h, kept[test.young], !test.want)
	}
}

// checkFilled checks Filled while a backfill runs: only incomplete answers state it, and they state the least share.
func checkFilled(t *testing.T, name string, answer func(*state.History) Answer, h *state.History, young *features.Feature, incomplete bool) {
	t.Helper()
	if young == nil {
		return
	}
	filling := *h
	for i, r := range young.Retained() {
		fill := &state.Fill{ID: fmt.Sprint("v", i), Columns: map[string][]string{r.Topic: {r.Key}}}
		filling.Fills = append(filling.Fills, state.FillEpoch{Fill: fill, Topic: r.Topic, Filled: 30 + 10*int64(i), All: 100})
	}
	if a := answer(&filling); a.Filling != incomplete || incomplete && a.Filled != 0.3 {
		t.Errorf("%s: filled %v, being filled %v; want 0.3, %v", name, a.Filled, a.Filling, incomplete)
	}
	for i := range filling.Fills {
		filling.Fills[i].Broken = true
	}
	if a := answer(&filling); a.Filling {
		t.Errorf("%s: being filled, although the fill was given up", name)
	}
}
