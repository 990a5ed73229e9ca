package model

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// bornWindows are those of windows, and others with different edges.
var bornWindows = append(slices.Clone(windows),
	"(lifetime, %s, tile=exact)", "(1h, %s, tile=exact, keep=2d, bounds='()')",
	"(fixed 2s max_length 2s last 2, %s, tile=exact, keep=2d)", "(fixed 90m max_length 2h, %s, tile=exact, keep=2d, exclude=current_time)",
)

// inTiles defines features whose windows begin with a tile, and features over several windows.
const inTiles = `
  rolling: COUNT_DISTINCT(10s, event, user, string, tile=1s, keep=2d)
  delayed: SUM(1d, event, int, user, keep=2d, delay=1h)
  ever: MAX(lifetime, event, int, user)
  through: COUNT(1h, event, string, through=SET(1d, event, user, string, keep=2d), keep=2d)
  through_session: SUM(session 1h, event, int, string, through=LAST_DISTINCT_K(1h, event, string, user, k=4, keep=2d), keep=2d)
  through_ever: COUNT(10s, event, string, tile=1s, through=LAST_K(last 3, event, string, user, k=3), keep=2d)
  sum: {expr: session_part + edge_part + through, default: -1}
  session_part: COUNT(session 2s max_length 3s, event, user, keep=2d)
  edge_part: COUNT(10s, event, user, tile=exact, bounds='[]', keep=2d)
  apart: {expr: fixed_part / edge_part, default: -1}
  fixed_part: COUNT(fixed 3s max_length 4s, event, user, keep=2d)
  alike: COUNT(1h, event, user, where='int == event.int', keep=2d)
  alike_part: SUM(10s, event, decimal, user, where='bool and string != event.string', bounds='[]', keep=2d)
  alike_share: {expr: alike / alike_part, default: -1}
`

// beforeBirth holds the earlier definitions: they keep nothing of the entity, some of its events, or all of them
// without the columns.
var beforeBirth = []string{
	"COUNT(1h, event, string)", "COUNT(1d, event, user, tile=exact, where='int > 1', keep=5d)", "COUNT(last 3, event, user)",
}

// The answer of a feature that was added while events flowed equals the answer of one that has all events, or is not
// complete.
func TestCompletenessOfNewFeatures(t *testing.T) {
	definitions := everyFunction(bornWindows, func(function, window int, types []value.Type) []value.Type {
		return types[(function+window)%len(types):][:1]
	})
	definitions = strings.Replace(definitions, "topic: pay\n", "topic: pay\n    max_future: 1s\n", 1)
	streams, _, _ := strings.Cut(definitions, "features:\n")
	parse := func(text string) *features.Registry {
		return defined.Registry(t, text)
	}
	after := parse(definitions + inTiles)
	var before []*features.Registry
	for _, f := range beforeBirth {
		before = append(before, parse(streams+"features:\n  before: "+f+"\n"))
	}
	compared := map[bool]map[string]int{true: {}, false: {}} // windows compared, by completeness
	rapid.Check(t, func(t *rapid.T) {
		c := windowCheck{T: t, registry: after, model: New(after), store: memory.New()}
		start, _ := time.Parse(time.RFC3339, rapid.SampledFrom(changes).Draw(t, "around"))
		c.step = rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 15 * time.Minute, 7 * time.Hour, 4 * 24 * time.Hour}).Draw(t, "step").Milliseconds()
		c.now = start.UnixMilli()
		history := c.born(rapid.SampledFrom(before).Draw(t, "before"), rapid.IntRange(1, 10).Draw(t, "unknown"))
		if rapid.IntRange(0, 3).Draw(t, "rest") == 0 {
			c.now += (400 * 24 * time.Hour).Milliseconds() // longer than any window but a lifetime
		}
		for range rapid.IntRange(0, 20).Draw(t, "known") {
			c.event()
		}
		c.model.InHand = eventOf(t, after, c.now, eventAt(t, c.now))
		at := max(c.now+c.steps(-8, 4), c.now-(2*24*time.Hour).Milliseconds())
		for _, f := range after.Features {
			for _, user := range []string{"a", "b"} {
				got := answerInHand(t, c.store, f, query.CompletenessOf(f, history), user, at, c.now, c.model.InHand)
				complete := got.Status != query.Incomplete
				compared[complete][f.Window.String()]++
				if complete {
					c.check(f, user, at, got)
				}
			}
		}
	})
	for _, f := range after.Features {
		for complete, windows := range compared {
			if windows[f.Window.String()] == 0 {
				t.Errorf("no answer over %s was complete: %v", f.Window, complete)
			}
		}
	}
}

// born applies a number of events before the definitions change, and returns the history of the
// state at that point.
func (c *windowCheck) born(before *features.Registry, events int) *state.History {
	c.mapper = before.NewMapper()
	for range events {
		c.event()
	}
	c.mapper = c.registry.NewMapper()
	was, is := before.Plan(), c.registry.Plan()
	return &state.History{
		PlanEpochs: []state.PlanEpoch{{Topic: "pay", Version: was.Version, Last: c.now}, {Topic: "pay", Version: is.Version, Last: state.MaxTime}},
		Plans:      map[string]*state.Plan{was.Version: was, is.Version: is},
	}
}
