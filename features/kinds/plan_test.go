package kinds_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/kinds"
)

func TestCompleteSince(t *testing.T) {
	const minute = 60_000
	plans := map[string]*kinds.Plan{
		"without": {},
		"with":    {Units: map[string]kinds.Kept{"count.x": {Keep: 7200_000}}},
		"longer":  {Units: map[string]kinds.Kept{"count.x": {Keep: 9000_000}}},
		"ever":    {Units: map[string]kinds.Kept{"count.x": {}}},
		"more":    {Units: map[string]kinds.Kept{"count.x": {Keep: 7200_000, Max: 100}}},
	}
	unit := func(keep int64, max int) kinds.Unit {
		return kinds.Unit{Key: "count.x", Topic: "t", Kept: kinds.Kept{Keep: keep, Max: max}, Future: 300, Tile: minute}
	}
	now := func(version string) kinds.Mark { return kinds.Mark{Topic: "t", Version: version, Last: kinds.NotYet} }
	until := func(version string, last int64) kinds.Mark {
		return kinds.Mark{Topic: "t", Version: version, Last: last}
	}
	for name, test := range map[string]struct {
		unit  kinds.Unit
		marks []kinds.Mark
		want  int64
	}{
		"nothing was read":                     {unit(7200_000, 0), nil, kinds.NotYet},
		"another topic was":                    {unit(7200_000, 0), []kinds.Mark{{Topic: "u", Version: "with", Last: kinds.NotYet}}, kinds.NotYet},
		"always kept":                          {unit(7200_000, 0), []kinds.Mark{now("with")}, kinds.Ever},
		"kept for longer":                      {unit(7200_000, 0), []kinds.Mark{now("longer")}, kinds.Ever},
		"kept for ever":                        {unit(7200_000, 0), []kinds.Mark{now("ever")}, kinds.Ever},
		"wanted for ever":                      {unit(0, 0), []kinds.Mark{now("longer")}, kinds.NotYet},
		"not kept by all":                      {unit(7200_000, 0), []kinds.Mark{now("with"), now("without")}, kinds.NotYet},
		"new":                                  {unit(7200_000, 0), []kinds.Mark{now("with"), until("without", 5000)}, 5301},
		"a plan that nobody knows":             {unit(7200_000, 0), []kinds.Mark{now("with"), until("?", 5000)}, 5301},
		"the latest counts":                    {unit(7200_000, 0), []kinds.Mark{until("without", 9000), now("with"), until("?", 5000)}, 9301},
		"a gap":                                {unit(7200_000, 0), []kinds.Mark{now("with"), until(kinds.Gap, 7000)}, 7301},
		"of another topic":                     {unit(7200_000, 0), []kinds.Mark{now("with"), {Topic: "u", Version: "without", Last: 5000}}, kinds.Ever},
		"kept for less before: from a tile on": {unit(9000_000, 0), []kinds.Mark{now("longer"), until("with", 5000)}, minute},
		"on the edge of a tile":                {unit(9000_000, 0), []kinds.Mark{now("longer"), until("with", minute-301)}, minute},
		"over the edge of a tile":              {unit(9000_000, 0), []kinds.Mark{now("longer"), until("with", minute-300)}, 2 * minute},
		"fewer values before":                  {unit(7200_000, 100), []kinds.Mark{now("more"), until("with", 5000)}, minute},
	} {
		t.Run(name, func(t *testing.T) {
			h := kinds.History{Marks: test.marks, Plans: plans}
			if got := h.CompleteSince([]kinds.Unit{test.unit}); got != test.want {
				t.Errorf("complete since %d, want %d", got, test.want)
			}
		})
	}
	h := kinds.History{Marks: []kinds.Mark{now("with"), until("without", 5000)}, Plans: plans}
	if got := h.CompleteSince(nil); got != kinds.Ever {
		t.Errorf("no unit: complete since %d", got)
	}
}

func TestPlanCovers(t *testing.T) {
	plan := func(units map[string]kinds.Kept) *kinds.Plan { return &kinds.Plan{Units: units} }
	small := plan(map[string]kinds.Kept{"aaaaa.1": {Keep: 5}})
	for name, test := range map[string]struct {
		p, other *kinds.Plan
		want     bool
	}{
		"itself":    {small, small, true},
		"nothing":   {small, plan(nil), true},
		"by none":   {plan(nil), small, false},
		"more":      {plan(map[string]kinds.Kept{"aaaaa.1": {Keep: 5}, "b": {}}), small, true},
		"another":   {plan(map[string]kinds.Kept{"aaaaa.2": {Keep: 5}}), small, false},
		"less":      {plan(map[string]kinds.Kept{"aaaaa.1": {Keep: 4}}), small, false},
		"for ever":  {plan(map[string]kinds.Kept{"aaaaa.1": {}}), small, true},
		"less max":  {plan(map[string]kinds.Kept{"aaaaa.1": {Max: 1}}), plan(map[string]kinds.Kept{"aaaaa.1": {Max: 2}}), false},
		"not ever":  {small, plan(map[string]kinds.Kept{"aaaaa.1": {}}), false},
		"equal max": {plan(map[string]kinds.Kept{"aaaaa.1": {Max: 2}}), plan(map[string]kinds.Kept{"aaaaa.1": {Max: 2}}), true},
	} {
		if got := test.p.Covers(test.other); got != test.want {
			t.Errorf("%s: covers %v", name, got)
		}
	}
	series := plan(map[string]kinds.Kept{"bbbbb.1:00": {}, "aaaaa.1": {}, "bbbbb.1": {}}).Series()
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
		if got := kinds.Believed(timestamp, clock); got != want {
			t.Errorf("%d is believed to be %d, want %d", timestamp, got, want)
		}
	}
}
