package model

import (
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

// While windows become longer and shorter, their tiles wider and narrower, caps higher and lower, and other features come and
// go, with backfills, without, or with interrupted ones, no count falls by more than what leaves its window, and no answer is
// complete only since a moment to come. A count that had more than its window, out of wider tiles, may lose that.
func TestCountsNeverFallByAChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		windows := []string{"1h", "2h", "5h", "10h"}
		define := func() *processor {
			tiled, logged := rapid.SampledFrom(windows).Draw(t, "tiled"), rapid.SampledFrom(windows).Draw(t, "logged")
			text, _, _ := strings.Cut(everyFunction(nil, nil), "features:\n")
			text += "features:\n  none: COUNT(1h, event, string)\n"
			if rapid.IntRange(0, 3).Draw(t, "there") > 0 {
				tile := rapid.SampledFrom([]string{"5m", "5m", "15m", "20m", "1h"}).Draw(t, "tile")
				text += fmt.Sprintf("  f0: COUNT(%s, event, user, tile=%s)\n  f3: AVG(%s, event, int, user, tile=%s)\n", tiled, tile, tiled, tile)
			}
			text += fmt.Sprintf("  f1: COUNT(%s, event, user, tile=exact, max=%d)\n", logged, rapid.IntRange(1000, 2000).Draw(t, "max"))
			if rapid.Bool().Draw(t, "column") {
				text += "  f2: SUM(1h, event, int, user, tile=exact)\n"
			}
			r, err := defined.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			return &processor{given: r}
		}
		c := newChanging(t, define().given)
		ahead := rapid.SampledFrom([]int64{0, (365 * 24 * time.Hour).Milliseconds()}).Draw(t, "clock ahead") // as in a replay
		truth := func(name string) int64 {
			a, _ := c.references[c.processors[0].given.Version()].answer(name, "a", c.now)
			return a.Value.Num
		}
		counts := func() map[string]int64 {
			h, found := c.history(), map[string]int64{}
			h.Now += ahead
			for _, f := range c.processors[0].given.Serving(h).Features {
				if f.Name == "none" || f.Name == "f2" {
					continue
				}
				a := answerSince(t, c.store, f, query.CompletenessOf(f, h), "a", c.now, c.now)
				if a.CompleteSince > max(a.To, h.Now) {
					t.Fatalf("%s is complete since %d, a moment to come at %d", f.Definition, a.CompleteSince, h.Now)
				}
				if loop, _ := c.references[c.processors[0].given.Version()].answer(f.Name, "a", c.now); a.Exact && fmt.Sprint(a.Value) != fmt.Sprint(loop.Value) {
					t.Fatalf("%s is %v, exact and complete; a loop over all events gives %v", f.Definition, a.Value, loop.Value)
				}
				if f.Name != "f3" {
					found[f.Name] = a.Value.Num
				}
			}
			return found
		}
		// before has the counts since the last event, and were what a loop over all events gives for them.
		before, were := map[string]int64{}, map[string]int64{}
		flow := func() {
			c.flow()
			before = counts()
			for name := range before {
				were[name] = truth(name)
				before[name] = min(before[name], were[name])
			}
		}
		flow()
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			switch rapid.SampledFrom([]string{"take", "take", "fill", "fill all"}).Draw(t, "change") {
			case "take":
				given := define().given
				c.take(0, given)
				c.take(1, given)
			case "fill":
				c.fill(rapid.IntRange(0, 1).Draw(t, "processor"), rapid.IntRange(1, 10).Draw(t, "records"))
			case "fill all":
				c.fill(0, math.MaxInt)
				c.fill(1, math.MaxInt)
			}
			found := counts()
			maps.DeleteFunc(before, func(name string, _ int64) bool { _, has := found[name]; return !has })
			for name, after := range found {
				if was, had := before[name]; had && after < was-max(0, were[name]-truth(name)) {
					t.Fatalf("%s fell from %d to %d, and all events would be %d and %d:\n%s", name, was, after, were[name], truth(name), c.plansText())
				}
				were[name] = truth(name)
				before[name] = min(after, were[name])
			}
			if rapid.Bool().Draw(t, "flow") {
				flow()
			}
		}
	})
}
