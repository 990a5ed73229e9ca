package features_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// A greater cap is filled in another generation; a lesser one is covered.
func TestCapsMakeGenerations(t *testing.T) {
	for name, c := range map[string]struct{ low, high string }{
		"a log":       {"exact: COUNT(1h, payment, user, tile=exact, max=10)", "exact: COUNT(1h, payment, user, tile=exact, max=11)"},
		"a set":       {"cards: SET(1h, payment, user, card, max=10)", "cards: SET(1h, payment, user, card, max=11)"},
		"values seen": {"seen: COUNT_DISTINCT(1h, payment, user, card, method=last_seen, max=10)", "seen: COUNT_DISTINCT(1h, payment, user, card, method=last_seen, max=11)"},
		"keys":        {"cards: COUNT(1h, payment, user, per=card, max=10)", "cards: COUNT(1h, payment, user, per=card, max=11)"},
	} {
		streams, _, _ := strings.Cut(minimal, "features:")
		low, high := mustParse(t, streams+"features:\n  "+c.low), mustParse(t, streams+"features:\n  "+c.high)
		generations := func(before, after *features.Registry) int {
			plan := before.Plan()
			plans := map[string]*state.Plan{plan.Version: plan}
			h := &state.History{Plans: plans, PlanEpochs: []state.PlanEpoch{{Topic: "payments", Version: plan.Version, Last: state.MaxTime}}}
			return len(state.Bind(after.Plan(), &state.Known{Plans: plans, History: h, Now: 1e12}).Generations)
		}
		if got := generations(low, high); got != 1 {
			t.Errorf("%s: %d series have generations after its max was raised, want 1", name, got)
		}
		if got := generations(high, low); got != 0 {
			t.Errorf("%s: %d series have generations after its max was lowered, want none", name, got)
		}
	}
}

// Events write all generations of a plan, and each feature reads the most complete one.
func TestGenerations(t *testing.T) {
	before := mustParse(t, minimal)
	after := mustParse(t, minimal+`
  long: COUNT(5h, payment, user, tile=1m)
  short: COUNT(1h, payment, user, tile=1m)
  column: LAST(1h, payment, note, user, tile=exact)
  looked: {expr: long + merchant.score}
tables:
  merchant: {topic: merchants, key: id, fields: {score: int}}
services:
  both: [ratio, column]
`)
	history := func(plan *state.Plan, last int64) *state.History {
		return &state.History{
			PlanEpochs: []state.PlanEpoch{{Topic: "payments", Version: before.Plan().Version, Last: last}},
			Plans:      map[string]*state.Plan{before.Plan().Version: before.Plan(), plan.Version: plan},
		}
	}
	known := state.Known{Plans: map[string]*state.Plan{before.Plan().Version: before.Plan()}, History: history(before.Plan(), state.MaxTime), Now: 1e12}
	bound := state.Bind(after.Plan(), &known)
	h := history(bound, 1e12)
	h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: "payments", Version: bound.Version, Last: state.MaxTime})
	keeping := after.Keeping(bound, h)
	if keeping.Plan() != bound {
		t.Fatal("the registry does not have the bound plan")
	}
	if filled, want := keeping.FilledBy(state.NewFills(bound, []*state.Plan{before.Plan()})[0]), "[column long looked]"; fmt.Sprint(filled) != want {
		t.Errorf("the features of the fill are %v, want %s: long still reads the older generation", filled, want)
	}
	filling := *h
	filling.Newest, filling.Now = 1e12+60_000, 1e12+60_000 // the older generation still reaches back further
	filling.Fills = []state.FillEpoch{{Fill: state.NewFills(bound, []*state.Plan{before.Plan()})[0], Topic: "payments", Filled: 3, All: 4}}
	young := after.Keeping(bound, &filling)
	for name, want := range map[string]struct{ read, filled float64 }{"long": {1, 0.75}, "column": {0.75, 0.75}, "each": {1, 1}} {
		f, _ := young.Feature(name)
		if read, filled := filling.Filled(f.Retained()), query.CompletenessOf(f, &filling).Filled(); read != want.read || filled != want.filled {
			t.Errorf("%s: what is read is filled by %g, and answers say %g, want %g and %g", name, read, filled, want.read, want.filled)
		}
	}
	looked, _ := keeping.Feature("looked")
	if table, _ := after.Table("merchant"); len(looked.Tables()) != 1 || looked.Tables()[0] != table || len(looked.Series) != 1 {
		t.Errorf("the feature over generations looks up %v, want the table as defined", looked.Tables())
	}
	reads := func(name string) (ids []string) {
		f, _ := keeping.Feature(name)
		for _, s := range f.Series {
			ids = append(ids, s.ID)
		}
		for _, r := range f.Retained() {
			if _, kept := bound.Retained[r.Key]; !kept {
				t.Errorf("%s needs %s, which is not kept", name, r.Key)
			}
		}
		return ids
	}
	given := func(name string) (ids []string) {
		f, _ := after.Feature(name)
		for _, s := range f.Series {
			ids = append(ids, s.ID)
		}
		return ids
	}
	for _, name := range []string{"last", "exact", "ratio", "count"} {
		if got, want := reads(name), given(name); !slices.Equal(got, want) {
			t.Errorf("%s reads %v, want %v", name, got, want)
		}
	}
	if got, want := reads("column"), []string{state.GenerationID(given("column")[0], state.Generation{Number: 1})}; !slices.Equal(got, want) {
		t.Errorf("a new column is read from %v, want %v", got, want)
	}
	if s := keeping.Services[0]; s.Features[1].Series[0].ID != reads("column")[0] {
		t.Error("the service does not read the series of its feature")
	}
	var b state.Batch
	b.Ranges = []state.PartitionRange{{Partition: state.Partition{Topic: "payments"}}}
	rec := &record.Record{Partition: state.Partition{Topic: "payments"}, Timestamp: 1e12, Value: []byte(`{"type":"payment","at":1000000000000,"user":"u","card":"c","amount":{"cents":5000},"note":"n"}`)}
	if _, err := keeping.NewMapper().Map(rec, 0, &b); err != nil {
		t.Fatal(err)
	}
	written := map[string]int{}
	for _, mutation := range b.Mutations {
		written[mutation.Series.ID]++
	}
	for _, s := range keeping.Series {
		if written[s.ID] == 0 {
			t.Errorf("%s is not written: %v", s.ID, fmt.Sprint(written))
		}
	}
	for base, numbers := range bound.Generations {
		for _, n := range numbers {
			if id := state.GenerationID(base, n); written[id] != written[base] && len(numbers) > 1 {
				t.Errorf("%s is written %d times, %s %d times", id, written[id], base, written[base])
			}
		}
	}
}

// A feature with narrower tiles than another one of the same events is answered from those of the other one until its own are filled.
func TestStandInsOfTheSameDefinitions(t *testing.T) {
	streams, _, _ := strings.Cut(minimal, "features:")
	days := streams + "features:\n  days: COUNT(7d, payment, user, tile=1d)"
	before, after := mustParse(t, days), mustParse(t, days+"\n  hours: COUNT(1d, payment, user, tile=1h)")
	reads := func(r *features.Registry, name string) string {
		f, _ := r.Feature(name)
		return f.Series[0].ID
	}
	plan := before.Plan()
	known := state.Known{Plans: map[string]*state.Plan{plan.Version: plan}, Now: 1e12, History: &state.History{
		Plans: map[string]*state.Plan{plan.Version: plan}, PlanEpochs: []state.PlanEpoch{{Topic: "payments", Version: plan.Version, Last: state.MaxTime}},
	}}
	bound := state.Bind(after.Plan(), &known)
	if bound.Version != after.Plan().Version || !bound.Passing() {
		t.Fatalf("bound to %s, passing %v; want the plan of the definitions, while it is filled", bound.Version, bound.Passing())
	}
	keeping := after.Keeping(bound, known.History)
	for what, r := range map[string]*features.Registry{"answers": after.Serving(known.History), "enriched events": keeping} {
		if got, want := reads(r, "hours"), reads(after, "days"); got != want {
			t.Errorf("%s of hours are read from %s before anything is filled, want %s, as those of days", what, got, want)
		}
	}

	fill := state.NewFills(bound, []*state.Plan{plan})[0]
	known.Plans[bound.Version], known.Fills = bound, map[string]*state.Fill{fill.ID: fill}
	known.History.Plans = known.Plans
	known.History.Fills = []state.FillEpoch{{Fill: fill, Topic: "payments", Since: state.MinTime, Whole: true}}
	known.History.PlanEpochs[0].Last = 1e12
	known.History.PlanEpochs = append(known.History.PlanEpochs, state.PlanEpoch{Topic: "payments", Version: bound.Version, Last: state.MaxTime})
	filled := state.Bind(after.Plan(), &known)
	if filled.Version != bound.Version || filled.Passing() {
		t.Errorf("bound to %s, passing %v, once all is filled; want %s for good", filled.Version, filled.Passing(), bound.Version)
	}
	for what, r := range map[string]*features.Registry{"answers": after.Serving(known.History), "enriched events": after.Keeping(filled, known.History)} {
		if got, want := reads(r, "hours"), reads(after, "hours"); got != want {
			t.Errorf("%s of hours are read from %s once all is filled, want %s", what, got, want)
		}
	}
}

// After a gap all state is complete since the same moment. Each feature is then read from its own, which is kept for as
// long as it needs.
func TestOwnTilesAfterAGap(t *testing.T) {
	streams, _, _ := strings.Cut(minimal, "features:")
	r := mustParse(t, streams+"features:\n  days: COUNT(7d, payment, user, tile=1d)\n  ever: COUNT(lifetime, payment, user)\n  hours: COUNT(1d, payment, user, tile=1h)")
	plan := r.Plan()
	h := &state.History{Plans: map[string]*state.Plan{plan.Version: plan}, Newest: 1e12, Now: 1e12, PlanEpochs: []state.PlanEpoch{
		{Topic: "payments", Version: plan.Version, Last: state.MaxTime}, {Topic: "payments", Version: state.Gap, Last: 1e12 - 1000},
	}}
	serving := r.Serving(h)
	for _, f := range r.Features {
		read, _ := serving.Feature(f.Name)
		if read.Series[0].ID != f.Series[0].ID {
			t.Errorf("%s is read from %s, want its own %s", f.Name, read.Series[0].ID, f.Series[0].ID)
		}
	}
}

// The same holds for a feature that was added beside tiles which are kept for less time, once it is filled.
func TestOwnTilesOfALaterFeatureAfterAGap(t *testing.T) {
	streams, _, _ := strings.Cut(minimal, "features:")
	days := streams + "features:\n  days: COUNT(7d, payment, user, tile=1d)"
	before, after := mustParse(t, days).Plan(), mustParse(t, days+"\n  ever: COUNT(lifetime, payment, user)")
	plan := after.Plan()
	fill := state.NewFills(plan, []*state.Plan{before})[0]
	h := &state.History{
		Plans: map[string]*state.Plan{before.Version: before, plan.Version: plan}, Newest: 1e12, Now: 1e12,
		PlanEpochs: []state.PlanEpoch{
			{Topic: "payments", Version: before.Version, Last: 1e12 - 5000}, {Topic: "payments", Version: plan.Version, Last: state.MaxTime},
			{Topic: "payments", Version: state.Gap, Last: 1e12 - 1000},
		},
		Fills: []state.FillEpoch{{Fill: fill, Topic: "payments", Since: state.MinTime, Whole: true}},
	}
	own, _ := after.Feature("ever")
	read, _ := after.Serving(h).Feature("ever")
	if read.Series[0].ID != own.Series[0].ID {
		t.Errorf("a lifetime is read from %s, want its own %s", read.Series[0].ID, own.Series[0].ID)
	}
}
