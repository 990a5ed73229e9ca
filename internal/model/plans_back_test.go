package model

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/state"
)

// The plans, and nothing else, go back in time while definitions change and fills are under way: also after a processor has
// bound its definitions, or while it goes on with a plan that is lost. No process remembers the lost plans but those that it applies
// itself. Fills end all the same once that is over, all features are complete then, and what was said to be complete always was.
func TestFillsEndThoughPlansGoBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var versions []*features.Registry
		for bits := uint64(0); len(versions) < 3; { // each has more features, and so fills of its own
			bits |= rapid.Uint64Range(1, all).Draw(t, "more") & rapid.Uint64Range(1, all).Draw(t, "of these")
			versions = append(versions, sharing(t, bits))
		}
		c := newChanging(t, versions[0])
		c.flow()
		var registered []*state.Plan
		saved := []func(){c.store.SavePlans()}
		take := func(i, version int) {
			given := versions[version]
			plan, history, err := c.store.Bind(t.Context(), given.Plan())
			c.succeed(err)
			if rapid.IntRange(0, 5).Draw(t, "they go back now") == 0 {
				saved[rapid.IntRange(0, len(saved)-1).Draw(t, "to")]()
				c.lost = true
			}
			c.takeBound(i, given, plan, history)
			registered = append(registered, plan)
		}
		renew := func(i int) {
			if i < len(registered) { // another processor has it
				c.register(registered[i])
			}
		}
		back := func(to int) { saved[to](); c.lost = true }
		// Most begin with two fills that become one, which partitions that were taken with the two do not know.
		steps := []func(){
			func() { take(0, 1) }, func() { take(0, 2) }, func() { back(0) }, func() { renew(1) }, func() { renew(0) }, func() { take(1, 2) },
		}
		if rapid.Bool().Draw(t, "both took them") {
			steps = slices.Insert(steps, 2, func() { take(1, 2) })
		}
		for range rapid.IntRange(0, 6).Draw(t, "more steps") {
			i, n := rapid.IntRange(0, 1).Draw(t, "processor"), rapid.IntRange(0, 2).Draw(t, "number")
			steps = append(steps, rapid.SampledFrom([]func(){
				func() { take(i, n) }, func() { renew(n) }, func() { back(min(n, len(saved)-1)) }, func() { c.fill(i, 1+5*n) },
			}).Draw(t, "step"))
		}
		for _, step := range steps {
			if rapid.IntRange(0, 5).Draw(t, "left out") > 0 {
				step()
			}
			c.look()
			c.flow()
			saved = append(saved, c.store.SavePlans())
		}
		for range 4 {
			for i := range c.processors {
				c.take(i, versions[2])
			}
			for i := range c.processors {
				c.fill(i, math.MaxInt)
			}
		}
		c.look()
		h := c.history()
		for _, f := range versions[2].Serving(h).Features {
			if a := answerSince(t, c.store, f, query.CompletenessOf(f, h), "a", c.now, c.now); a.Status == query.Incomplete {
				t.Fatalf("%s is complete only since %d, and filled for %v, and stays so:\n%s", f.Definition, a.CompleteSince, a.Filled, c.plansText())
			}
		}
	})
}
