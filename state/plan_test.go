package state_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
)

func TestCompleteSince(t *testing.T) {
	const minute = 60_000
	plans := map[string]*state.Plan{
		"without": {},
		"with":    {Retained: map[string]state.Retention{"count.x": {Keep: 7200_000}}},
		"longer":  {Retained: map[string]state.Retention{"count.x": {Keep: 9000_000}}},
		"ever":    {Retained: map[string]state.Retention{"count.x": {}}},
		"more":    {Retained: map[string]state.Retention{"count.x": {Keep: 7200_000, Max: 100}}},
	}
	retained := func(keep int64, max int) state.Retained {
		return state.Retained{Key: "count.x", Topic: "t", Retention: state.Retention{Keep: keep, Max: max}, Tile: minute}
	}
	now := func(version string) state.PlanEpoch {
		return state.PlanEpoch{Topic: "t", Version: version, Last: state.MaxTime}
	}
	until := func(version string, last int64) state.PlanEpoch {
		return state.PlanEpoch{Topic: "t", Version: version, Last: last}
	}
	for name, test := range map[string]struct {
		retained state.Retained
		epochs   []state.PlanEpoch
		want     int64
	}{
		"nothing was read":                     {retained(7200_000, 0), nil, state.MaxTime},
		"another topic was":                    {retained(7200_000, 0), []state.PlanEpoch{{Topic: "u", Version: "with", Last: state.MaxTime}}, state.MaxTime},
		"always kept":                          {retained(7200_000, 0), []state.PlanEpoch{now("with")}, state.MinTime},
		"kept for longer":                      {retained(7200_000, 0), []state.PlanEpoch{now("longer")}, state.MinTime},
		"kept forever":                         {retained(7200_000, 0), []state.PlanEpoch{now("ever")}, state.MinTime},
		"wanted forever":                       {retained(0, 0), []state.PlanEpoch{now("longer")}, state.MaxTime},
		"not kept by all":                      {retained(7200_000, 0), []state.PlanEpoch{now("with"), now("without")}, state.MaxTime},
		"new":                                  {retained(7200_000, 0), []state.PlanEpoch{now("with"), until("without", 5000)}, 5001},
		"an unknown plan":                      {retained(7200_000, 0), []state.PlanEpoch{now("with"), until("?", 5000)}, 5001},
		"the latest counts":                    {retained(7200_000, 0), []state.PlanEpoch{until("without", 9000), now("with"), until("?", 5000)}, 9001},
		"a gap":                                {retained(7200_000, 0), []state.PlanEpoch{now("with"), until(state.Gap, 7000)}, 7001},
		"of another topic":                     {retained(7200_000, 0), []state.PlanEpoch{now("with"), {Topic: "u", Version: "without", Last: 5000}}, state.MinTime},
		"kept for less before: from a tile on": {retained(9000_000, 0), []state.PlanEpoch{now("longer"), until("with", 5000)}, minute},
		"on the edge of a tile":                {retained(9000_000, 0), []state.PlanEpoch{now("longer"), until("with", minute-1)}, minute},
		"over the edge of a tile":              {retained(9000_000, 0), []state.PlanEpoch{now("longer"), until("with", minute)}, 2 * minute},
		"fewer values before":                  {retained(7200_000, 100), []state.PlanEpoch{now("more"), until("with", 5000)}, minute},
	} {
		t.Run(name, func(t *testing.T) {
			h := state.History{PlanEpochs: test.epochs, Plans: plans}
			if got := h.CompleteSince([]state.Retained{test.retained}); got != test.want {
				t.Errorf("complete since %d, want %d", got, test.want)
			}
		})
	}
	h := state.History{PlanEpochs: []state.PlanEpoch{now("with"), until("without", 5000)}, Plans: plans}
	if got := h.CompleteSince(nil); got != state.MinTime {
		t.Errorf("without units: complete since %d, want since always", got)
	}
}

// State that is kept for less than is wanted has everything since so long ago, also after it is kept for longer.
func TestCompleteSinceMovesWithTime(t *testing.T) {
	const minute = 60_000
	kept := func(keep int64, max int) *state.Plan {
		return &state.Plan{Retained: map[string]state.Retention{"count.x": {Keep: keep, Max: max}}}
	}
	plans := map[string]*state.Plan{"short": kept(120*minute, 5), "long": kept(240*minute, 5), "fewer": kept(240*minute, 3), "none": {}}
	for name, c := range map[string]struct {
		short, now int64 // until when the short plan was applied; state.MaxTime for still
		other      string
		want       int64
	}{
		"it is still kept for less":    {state.MaxTime, 1000 * minute, "", 885 * minute},
		"it was until now":             {1000 * minute, 1000 * minute, "long", 885 * minute},
		"it was until a moment ago":    {990 * minute, 1000 * minute, "long", 885 * minute},
		"it was long ago":              {700 * minute, 1000 * minute, "long", 701 * minute},
		"it was not at all for a time": {990 * minute, 1000 * minute, "none", state.MaxTime},
		"fewer values are kept now":    {990 * minute, 1000 * minute, "fewer", state.MaxTime},
		"the time is unknown":          {state.MaxTime, 0, "", state.MaxTime},
		"the time is unknown, and was": {990 * minute, 0, "long", 991 * minute},
	} {
		epochs := []state.PlanEpoch{{Topic: "t", Version: "short", Last: c.short}}
		if c.other != "" {
			epochs = append(epochs, state.PlanEpoch{Topic: "t", Version: c.other, Last: state.MaxTime})
		}
		h := state.History{PlanEpochs: epochs, Plans: plans, Now: c.now}
		wanted := state.Retained{Key: "count.x", Topic: "t", Retention: state.Retention{Keep: 240 * minute, Max: 5}, Tile: minute}
		if got := h.CompleteSince([]state.Retained{wanted}); got != c.want {
			t.Errorf("%s: complete since %d, want %d", name, got, c.want)
		}
	}
}

func TestPlanCovers(t *testing.T) {
	plan := func(units map[string]state.Retention) *state.Plan { return &state.Plan{Retained: units} }
	small := plan(map[string]state.Retention{"aaaaa.1": {Keep: 5}})
	for name, test := range map[string]struct {
		p, other *state.Plan
		want     bool
	}{
		"itself":    {small, small, true},
		"nothing":   {small, plan(nil), true},
		"by none":   {plan(nil), small, false},
		"more":      {plan(map[string]state.Retention{"aaaaa.1": {Keep: 5}, "b": {}}), small, true},
		"another":   {plan(map[string]state.Retention{"aaaaa.2": {Keep: 5}}), small, false},
		"less":      {plan(map[string]state.Retention{"aaaaa.1": {Keep: 4}}), small, false},
		"forever":   {plan(map[string]state.Retention{"aaaaa.1": {}}), small, true},
		"less max":  {plan(map[string]state.Retention{"aaaaa.1": {Max: 1}}), plan(map[string]state.Retention{"aaaaa.1": {Max: 2}}), false},
		"not ever":  {small, plan(map[string]state.Retention{"aaaaa.1": {}}), false},
		"equal max": {plan(map[string]state.Retention{"aaaaa.1": {Max: 2}}), plan(map[string]state.Retention{"aaaaa.1": {Max: 2}}), true},
	} {
		if got := test.p.Covers(test.other); got != test.want {
			t.Errorf("%s: covers %v, want %v", name, got, test.want)
		}
	}
	series := plan(map[string]state.Retention{"bbbbb.1:00": {}, "aaaaa.1": {}, "bbbbb.1": {}}).Series()
	if diff := cmp.Diff([]string{"aaaaa", "bbbbb"}, series); diff != "" {
		t.Error(diff)
	}
}

func TestBelieved(t *testing.T) {
	clock := time.UnixMilli(1_700_000_000_000)
	for timestamp, want := range map[int64]int64{
		0:                 0,
		1_700_000_000_000: 1_700_000_000_000,
		1_700_086_400_000: 1_700_086_400_000, // a day ahead
		1_700_086_400_001: 1_700_086_400_000,
		math.MaxInt64:     1_700_086_400_000,
	} {
		if got := state.Believed(timestamp, clock); got != want {
			t.Errorf("Believed(%d) = %d, want %d", timestamp, got, want)
		}
	}
}

// What plans have fed since an earlier moment than a fill reaches back to, as when the log has lost records meanwhile, stays complete
// since then.
func TestCompleteSinceOfAFillThatReachesBackLess(t *testing.T) {
	column := state.Retained{Key: "count.x", Topic: "t", Retention: state.Retention{Keep: 7200_000}}
	fill := &state.Fill{ID: "f", Columns: map[string][]string{"t": {"count.x"}}}
	for name, c := range map[string]struct{ since, gap, want int64 }{
		"it reaches back further":               {since: 100, want: 100},
		"it reaches back less":                  {since: 9000, want: 5001},
		"there is a gap, before the plan began": {since: 100, gap: 3000, want: 3001},
		"there is a gap since":                  {since: 100, gap: 8000, want: 8001},
	} {
		h := state.History{
			PlanEpochs: []state.PlanEpoch{{Topic: "t", Version: "with", Last: state.MaxTime}, {Topic: "t", Version: "without", Last: 5000}},
			Plans:      map[string]*state.Plan{"with": {Retained: map[string]state.Retention{"count.x": {Keep: 7200_000}}}, "without": {}},
			Fills:      []state.FillEpoch{{Fill: fill, Topic: "t", Whole: true, Since: c.since}},
		}
		if c.gap > 0 {
			h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: "t", Version: state.Gap, Last: c.gap})
		}
		if got := h.CompleteSince([]state.Retained{column}); got != c.want {
			t.Errorf("%s: complete since %d, want %d", name, got, c.want)
		}
	}
}

// The filled share of a feature is the least of its columns that are being filled.
func TestFilled(t *testing.T) {
	fill := func(key string, filled int64) state.FillEpoch {
		return state.FillEpoch{Fill: &state.Fill{ID: key, Columns: map[string][]string{"tx": {key}}}, Topic: "tx", Filled: filled, All: 10}
	}
	whole, broken, begins := fill("whole", 10), fill("broken", 1), fill("begins", 0)
	whole.Whole, broken.Broken, begins.All = true, true, 0
	h := &state.History{Fills: []state.FillEpoch{fill("some", 4), whole, fill("more", 7), broken, begins, fill("last", 10)}}
	for name, test := range map[string]struct {
		keys []string
		want float64
	}{
		"the least":               {[]string{"some", "whole", "more"}, 0.4},
		"the least is first":      {[]string{"more", "some"}, 0.4},
		"none is being filled":    {[]string{"whole", "broken", "elsewhere"}, 1},
		"one has not begun":       {[]string{"more", "begins"}, 0},
		"a partition is left out": {[]string{"last"}, 0.999},
	} {
		var retained []state.Retained
		for _, key := range test.keys {
			retained = append(retained, state.Retained{Topic: "tx", Key: key})
		}
		if got := h.Filled(retained); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
