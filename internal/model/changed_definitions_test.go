package model

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

// shared are features that share logs, sets and tiles, with different caps, windows and columns.
var shared = []string{
	"SPEED(1h, event, location, user, where='location != nil', max=3)",
	"COUNT(2h, event, user, tile=exact, where='int > 1')",
	"ACTIVE(1d, event, user, unit=30m, tile=exact, max=1000, keep=5h)",
	"LAST_K(1h, event, string, user, k=3, max=4)",
	"SUM(3h, event, decimal, user, tile=exact, max=6, keep=2h)",
	"MAX(lifetime, event, int, user, tile=exact, max=8)",
	"COUNT(session 1h, event, user, max=20)",
	"SUM(1h, event, int, user, per=string, tile=exact, max=9)",
	"COUNT(1h, event, user, tile=5m)",
	"COUNT(1d, event, user, tile=5m, keep=5h)",
	"COUNT(lifetime, event, user)",
	"SET(2h, event, user, string, tile=30m, max=2)",
	"SET(1d, event, user, string, tile=30m, max=5)",
	"COUNT_DISTINCT(1h, event, user, string, method=last_seen, max=2)",
	"COUNT_DISTINCT(3h, event, user, string, method=last_seen, max=6)",
	"{expr: f0 + f8, default: -1}",
	"COUNT(1d, event, user, per=string, tile=30m, max=2)",
	"COUNT(2h, event, user, per=string, tile=30m, max=5)",
}

// all has the bits of all shared features.
var all = uint64(1)<<len(shared) - 1

// sharing returns the definitions of the features whose bits are set, with the parts of derived ones.
func sharing(t *rapid.T, bits uint64) *features.Registry {
	t.Helper()
	text, _, _ := strings.Cut(everyFunction(nil, nil), "features:\n")
	text += "features:\n  none: COUNT(1h, event, string)\n" // of an unused key
	for i, f := range shared {
		if parts := uint64(1<<0 | 1<<8); bits&(1<<i) != 0 && (f[0] != '{' || bits&parts == parts) {
			text += fmt.Sprintf("  f%d: %s\n", i, f)
		}
	}
	r, err := defined.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// reference holds what definitions answer that always existed.
type reference struct {
	*features.Registry
	model *Model
}

func newReference(r *features.Registry) reference { return reference{r, New(r)} }

// uncapped returns a reference of all features without caps.
func uncapped(t *rapid.T) reference {
	r := sharing(t, all)
	for _, s := range r.Series {
		s.Max = math.MaxInt16
	}
	for _, f := range r.Features {
		f.Call.Max = math.MaxInt16
	}
	return newReference(r)
}

// least returns a reference for all features in which each series has the least cap of the others.
func least(t *rapid.T, others map[string]reference) reference {
	r := sharing(t, all)
	for _, s := range r.Series {
		s.Max = math.MaxInt16
		for _, o := range others {
			for _, other := range o.Series {
				if other.ID == s.ID {
					s.Max = min(s.Max, other.Max)
				}
			}
		}
	}
	return newReference(r)
}

func (r reference) answer(name, user string, at int64) (answer aggregate.Result, has bool) {
	f, has := r.Feature(name)
	if !has {
		return answer, false
	}
	answer = r.model.Answer(f, user, at)
	if !answer.Found && len(f.Parts()) == 0 && f.Per == "" {
		answer.Value = f.Function.Spec().Neutral
	}
	return answer, true
}

// A feature that all definitions have stays complete, for any changes of others, with backfills or without. No change
// makes a feature that the definitions before and after it have less complete, or capped unless it is complete for longer
// then: a fill may end that kept fewer events. A complete answer is that of all events.
func TestChangedDefinitionsKeepFeaturesComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		always := rapid.Uint64Range(1, all).Draw(t, "always") & rapid.Uint64Range(1, all).Draw(t, "of these")
		draw := func() *features.Registry { return sharing(t, always|rapid.Uint64Range(0, all).Draw(t, "others")) }
		filling := rapid.Bool().Draw(t, "backfill")
		c := newChanging(t, draw())
		c.flow()
		for range rapid.IntRange(1, 8).Draw(t, "changes") {
			before := c.look()
			switch i := rapid.IntRange(0, 1).Draw(t, "processor"); rapid.SampledFrom([]string{"take", "take", "bind", "fill", "fill", "fill all", "forget"}).Draw(t, "change") {
			case "take":
				c.take(i, draw())
			case "bind":
				c.take(i, c.processors[i].given)
			case "fill":
				if filling {
					c.fill(i, rapid.IntRange(1, 10).Draw(t, "records"))
				}
			case "fill all":
				for i := range c.processors {
					if filling {
						c.fill(i, math.MaxInt)
					}
				}
			case "forget":
				c.begins[i] = rapid.Int64Range(c.begins[i], int64(len(c.logs[i]))).Draw(t, "log begins")
			}
			c.expectNoLess(before, c.look())
			c.flow()
		}
		c.look()
	})
}

// flow writes events, over minutes or days.
func (c *changing) flow() {
	step := rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Minute, 2 * time.Hour, 40 * time.Hour}).Draw(c.T, "step")
	for range rapid.IntRange(0, 8).Draw(c.T, "events") {
		c.event(step)
	}
}

// said holds the completeness and caps in a feature's answers.
type said struct {
	since  int64
	capped map[string]bool // by user
	keep   int64           // the least of what the feature needs, in ms; 0 for everything
}

// look asks for the features that both processors have, and compares the answers.
func (c *changing) look() map[string]said {
	answers := map[string]said{}
	h := c.history()
	serving := c.processors[rapid.IntRange(0, 1).Draw(c.T, "asked")].given.Serving(h)
	ago := rapid.Float64Range(0, 1).Draw(c.T, "ago")
	for _, f := range serving.Features {
		if !c.both(f.Name) {
			continue
		}
		is := query.CompletenessOf(f, h)
		says := said{is.Since(), map[string]bool{}, f.Retained()[0].Keep}
		for _, r := range f.Retained() {
			says.keep = min(says.keep, r.Keep)
		}
		keep := f.Keep.Milliseconds()
		for _, user := range []string{"a", "b"} {
			for _, at := range []int64{c.now - keep, c.now - int64(ago*float64(keep)), c.now} {
				a := answerSince(c.T, c.store, f, is, user, at, c.now)
				c.compare(f, user, at, &a)
				// Records of plans that lacked a column of the feature make its answers incomplete, but count towards a cap.
				says.capped[user] = a.Capped && a.Status != query.Incomplete
			}
		}
		answers[f.Name] = says
	}
	return answers
}

// compare compares an answer with the models'.
func (c *changing) compare(f *features.Feature, user string, at int64, a *query.Answer) {
	switch {
	case a.Status == query.Incomplete:
		if c.always(f.Name) && !c.lost {
			c.Fatalf("%s of %s was always kept, but at %d, %d ms ago, is complete only since %d:\n%s", f.Definition, user, at, c.now-at, a.CompleteSince, c.plansText())
		}
	case a.Capped:
		if least, _ := c.least.answer(f.Name, user, at); !least.Capped {
			c.Fatalf("%s of %s at %d, %d ms ago, is capped, although no cap has been low enough:\n%s", f.Definition, user, at, c.now-at, c.plansText())
		}
	default:
		want, _ := c.truth.answer(f.Name, user, at)
		if got, want := textOf(a.Value.AppendText(nil), a.Items, a.Capped), textOf(want.Value.AppendText(nil), want.Items, want.Capped); got != want {
			c.Fatalf("%s of %s at %d, %d ms ago, is %s, want %s; it is complete since %d:\n%s", f.Definition, user, at, c.now-at, got, want, a.CompleteSince, c.plansText())
		}
	}
}

func textOf(value []byte, items []aggregate.Item, capped bool) string {
	text := string(value)
	for _, i := range items {
		text += fmt.Sprintf(" %s:%s", i.Category.AppendText(nil), i.Value.AppendText(nil))
	}
	return fmt.Sprint(text, " ", capped)
}

// expectNoLess compares the completeness and caps of features before and after a change, with no event in between.
func (c *changing) expectNoLess(before, after map[string]said) {
	for name, is := range after {
		was, had := before[name]
		if !had {
			continue
		}
		asked := int64(state.MinTime) // the oldest event that can be asked about
		if is.keep > 0 {
			asked = c.now - is.keep
		}
		f, _ := c.truth.Feature(name)
		if is.since > max(was.since, asked) {
			c.Fatalf("%s was complete since %d, and is now only since %d:\n%s", f.Definition, was.since, is.since, c.plansText())
		}
		for user := range is.capped {
			complete := is.since <= c.now // else it lacks more than a cap takes
			if is.capped[user] && !was.capped[user] && complete && is.since >= was.since && !c.cappedNow(name, user) {
				c.Fatalf("%s of %s is capped now, but was not before:\n%s", f.Definition, user, c.plansText())
			}
		}
	}
}

// cappedNow reports whether an answer is capped if a log has the events and caps of the processors' definitions.
func (c *changing) cappedNow(name, user string) bool {
	now := map[string]reference{}
	for _, p := range c.processors {
		now[p.given.Version()] = c.references[p.given.Version()]
	}
	r := least(c.T, now)
	for _, rec := range c.records {
		c.succeed(r.model.Apply(rec))
	}
	a, _ := r.answer(name, user, c.now)
	return a.Capped
}
