package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// late defines features with their own state, which are added while others are still being filled.
const late = `
features:
  late_tx_3h: COUNT(3h, payment, merchant_id, where='amount > 5', tile=10m, keep=10d)
  late_sessions: COUNT(session 20m, payment, merchant_id, status, tile=exact, max=100000, keep=5d)
  late_sum: {expr: late_tx_3h + card_count_1h}
`

// Every kind of feature is defined while events flow. More features are added, removed and added
// again. Processors are killed in the middle of a backfill, and Redis is restarted and restored
// from an older copy. In the end every feature of every entity equals the model over the whole log,
// and is complete.
func TestBackfill(t *testing.T) {
	t.Parallel()
	events := fewer(60_000)
	server := redistest.New(t, redistest.Options{AOF: true})
	shipped := definitions(t)[:1]
	s := newSceneOf(t, server.Client(t), shipped, "--redis.addresses", server.Addr(), "--backfill.rate", "0.05")
	text, err := os.ReadFile("testdata/functions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	functions, all := string(text), filepath.Join(t.TempDir(), "all.yaml")
	withLate := functions + strings.TrimPrefix(late, "\nfeatures:\n")
	if err := os.WriteFile(all, []byte(withLate), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.registry, err = definition.Load(append(slices.Clone(shipped), all)...); err != nil {
		t.Fatal(err)
	}
	s.model = model.New(s.registry)
	const old = "features: {}\n"
	begin := func(role string, more ...string) *defined { return s.startWith(shipped, role, old, more...) }
	api := begin("api")
	first, second := begin("processor"), begin("processor")
	take := func(text string) {
		for _, d := range []*defined{api, first, second} {
			d.take(t, text)
		}
	}
	var copied redistest.Copy
	g := generate.New(seed, stream(150))
	s.flow(g, events,
		fault{"all take every kind of feature", func() {
			awaitShared(t, first.weir, second.weir)
			take(functions)
			s.awaitFilling("in mid backfill", func(f *state.FillEpoch) bool { return f.Filled > 0 && !f.Whole })
			copied = server.SaveCopy()
		}},
		fault{"a processor is killed in mid backfill", func() {
			s.kill(first)
			first = s.startWith(shipped, "processor", functions)
			awaitShared(t, first.weir, second.weir)
		}},
		fault{"more features come", func() {
			take(withLate)
			s.awaitFilling("both are under way", func(f *state.FillEpoch) bool { return f.All > 0 })
		}},
		fault{"Redis is put back to an older copy", func() {
			s.restore(server, copied)
		}},
		fault{"those that came last are taken away", func() { take(functions) }},
		fault{"and come back", func() { take(withLate) }},
		fault{"Redis is killed", func() {
			s.kill(server)
			server.Start()
		}},
		fault{"both processors are killed", func() {
			s.kill(first, second)
			first = s.startWith(shipped, "processor", withLate, "--backfill.rate", "1")
			second = s.startWith(shipped, "processor", withLate, "--backfill.rate", "1")
			awaitShared(t, first.weir, second.weir)
		}},
	)
	s.awaitApplied()
	s.awaitFilling("all is filled or given up", func(f *state.FillEpoch) bool { return f.Whole || f.Broken })
	// The needed part of a fill that was given up is filled again within a minute.
	testkit.Eventually(t, 3*time.Minute, "all features are complete", func() (bool, string) {
		now := blackbox.Comparison{T: t, URL: api.url, Model: s.model}
		now.All(s.registry, s.clock, s.clock)
		return len(now.Incomplete) == 0, fmt.Sprint(now.Incomplete)
	})
	c := blackbox.Comparison{T: t, URL: api.url, Model: s.model}
	c.All(s.registry, s.clock, moments(s.clock)...)
	if len(c.Incomplete) > 0 {
		t.Errorf("incomplete are %v", c.Incomplete)
	}
	t.Logf("%d answers compared; %d kills", c.Compared, s.kills)
}

// awaitFilling waits until there are fills, and holds is true for all of them.
func (s *scene) awaitFilling(what string, holds func(*state.FillEpoch) bool) {
	s.t.Helper()
	testkit.Eventually(s.t, 2*time.Minute, what, func() (bool, string) {
		h, err := s.store.History(ctx)
		if err != nil {
			return false, err.Error()
		}
		var text strings.Builder
		ok := len(h.Fills) > 0
		for i := range h.Fills {
			f := &h.Fills[i]
			ok = ok && holds(f)
			fmt.Fprintf(&text, "%s of %s: %d of %d, whole %v, broken %v, since %d\n", f.Fill.ID, f.Topic, f.Filled, f.All, f.Whole, f.Broken, f.Since)
		}
		return ok, text.String()
	})
}
