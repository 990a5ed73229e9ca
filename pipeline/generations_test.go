package pipeline_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/protocol"
)

// had defines features whose state exists before other features need more of it.
const had = `
  seconds: COUNT(10m, payment, user, tile=1s, keep=1h, delay=0s)
  biggest: MAX(10m, payment, cents, user, tile=exact, keep=1h)
  sizes: COUNT_DISTINCT(10m, payment, user, cents, method=last_seen, max=5, keep=1h)
`

// wantMore need more of that state: a longer past, other columns of the log, more values.
const wantMore = had + `
  long_seconds: COUNT(2h, payment, user, tile=1s, keep=1h, delay=0s)
  long_biggest: COUNT(2h, payment, user, tile=exact, where='cents > 100', keep=1h)
  last_note: LAST(1h, payment, note, user, tile=exact, keep=1h)
  more_sizes: COUNT_DISTINCT(10m, payment, user, cents, method=last_seen, max=1000, keep=1h)
  ratio: {expr: long_seconds / seconds}
`

// asked reads features of all users as questions do, with a history. It reads again if the history requires other
// generations of the state.
func (b *bench) asked(r *features.Registry, names []string, at int64) (answers map[string]query.Answer, h *state.History) {
	b.t.Helper()
	history := func() *state.History {
		h, err := b.store.History(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		return h
	}
	for h = history(); ; {
		serving := r.Serving(h)
		var reading query.Reading
		reading.Reset(at)
		for _, name := range names {
			f, ok := serving.Feature(name)
			if !ok {
				b.t.Fatalf("no feature %s", name)
			}
			for user := range 7 {
				reading.Want(f, fmt.Sprintf("u%d", user), at)
			}
		}
		if err := reading.Read(b.t.Context(), b.store); err != nil {
			b.t.Fatal(err)
		}
		h = history()
		if seriesOf(r.Serving(h), names) != seriesOf(serving, names) {
			continue
		}
		answers = map[string]query.Answer{}
		for _, name := range names {
			f, _ := serving.Feature(name)
			for user := range 7 {
				var a query.Answer
				reading.NextSince(&a, query.CompletenessOf(f, h))
				answers[fmt.Sprintf("%s of u%d", name, user)] = a
			}
		}
		return answers, h
	}
}

// seriesOf lists the series that features read.
func seriesOf(r *features.Registry, names []string) (list string) {
	for _, name := range names {
		f, _ := r.Feature(name)
		for _, s := range f.Series {
			list += s.ID + " "
		}
	}
	return list
}

// expectAll compares all features with the model over events 0 to n-1.
func (b *bench) expectAll(r *features.Registry, n int) {
	b.t.Helper()
	b.committed(n)
	m := model.New(r)
	for i := range n {
		msg := stamped(i)
		if err := m.Apply(record.Record{Partition: state.Partition{Topic: "payments"}, Offset: int64(i), Timestamp: msg.Time.UnixMilli(), Value: msg.Value}); err != nil {
			b.t.Fatal(err)
		}
	}
	var names []string
	for _, f := range r.Features {
		names = append(names, f.Name)
	}
	at := stampAt(n - 1)
	testkit.Eventually(b.t, 2*time.Minute, "every feature is whole", func() (bool, string) {
		answers, h := b.asked(r, names, at)
		for name, a := range answers {
			if a.Status == query.Incomplete {
				var plans, fills string
				for _, e := range h.PlanEpochs {
					plans += fmt.Sprintf("%+v\n%+v\n", e, h.Plans[e.Version])
				}
				for _, f := range h.Fills {
					fills += fmt.Sprintf("%+v %+v\n", f, f.Fill)
				}
				return false, fmt.Sprintf("%s is complete since %d, and not since %d\n%s%s", name, a.CompleteSince, a.From, plans, fills)
			}
		}
		return true, ""
	})
	answers, _ := b.asked(r, names, at)
	for _, f := range r.Features {
		for user := range 7 {
			entity := fmt.Sprintf("u%d", user)
			got, want := answers[f.Name+" of "+entity], m.Answer(f, entity, at)
			if g, w := string(got.Value.AppendText(nil)), string(want.Value.AppendText(nil)); g != w {
				b.t.Errorf("%s of %s is %s, want %s", f.Name, entity, g, w)
			}
		}
	}
}

// If features need more of existing state, it is filled from the log, beside the state of other features, which stay
// complete all the time.
func TestExistingStateIsRefilled(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.BindInterval = 20 * time.Millisecond
	before, after := registryOf(t, had), registryOf(t, wantMore)
	b.config.Registry = before
	b.run()
	b.writeStamped(0, 20000)
	b.committed(20000)
	ended := make(chan struct{})
	var flowing sync.WaitGroup
	flowing.Go(func() {
		i := 20000
		for ; i < 24000; i += 10 {
			b.writeStamped(i, i+10)
		}
	})
	flowing.Go(func() {
		for {
			select {
			case <-ended:
				return
			default:
			}
			answers, h := b.asked(before, []string{"seconds", "biggest", "paid"}, stampAt(20000))
			for name, a := range answers {
				if a.Status == query.Incomplete {
					t.Errorf("%s was complete, and is now complete only since %d: %+v", name, a.CompleteSince, h.PlanEpochs)
					return
				}
			}
		}
	})
	b.processor.Reload(after)
	b.awaitDefinitions(after)
	b.processor.Reload(before)
	b.awaitDefinitions(before)
	b.processor.Reload(after)
	b.awaitDefinitions(after)
	b.awaitOneGeneration(after)
	close(ended)
	flowing.Wait()
	b.expectAll(after, 24000)
	b.writeStamped(24000, 24100)
	b.expectAll(after, 24100)
	b.processor.Reload(before)
	b.awaitDefinitions(before)
	b.writeStamped(24100, 24200)
	b.expectAll(before, 24200)
	b.processor.Reload(after)
	b.awaitDefinitions(after)
	b.expectAll(after, 24200)
}

// awaitOneGeneration waits until definitions are applied with only one generation of each series.
func (b *bench) awaitOneGeneration(r *features.Registry) {
	b.t.Helper()
	testkit.Eventually(b.t, 2*time.Minute, "one generation is left", func() (bool, string) {
		h, err := b.store.History(b.t.Context())
		if err != nil {
			return false, err.Error()
		}
		for _, e := range h.PlanEpochs {
			p := h.Plans[e.Version]
			if e.Last != state.MaxTime || p == nil {
				continue
			}
			for _, numbers := range p.Generations {
				if len(numbers) > 1 {
					return false, fmt.Sprintf("%+v", p)
				}
			}
			return p.Definitions() == r.Plan().Version && len(p.Generations) > 0, fmt.Sprintf("%+v", p)
		}
		return false, "none"
	})
}

// Redis goes back to before a generation was filled, while a processor no longer keeps the one that was complete then: it
// keeps it again, so no feature that was complete then lacks anything.
func TestRedisGoesBackToBeforeAGenerationWasFilled(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	before, after := registryOf(t, had), registryOf(t, wantMore)
	b.config.Registry, b.config.Backfill = before, false
	b.run()
	b.writeStamped(0, 3000)
	b.committed(3000)
	b.processor.Reload(after)
	b.awaitDefinitions(after)
	unfilled := server.SaveCopy()
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.config.Registry, b.config.Backfill, b.config.BindInterval = after, true, 20*time.Millisecond
	b.run()
	b.awaitOneGeneration(after)
	server.RestoreCopy(unfilled)
	whole := false
	for began := time.Now(); !whole && time.Since(began) < 2*time.Minute; {
		answers, _ := b.asked(after, []string{"seconds", "biggest", "paid", "long_seconds"}, stampAt(2999))
		whole = true
		for name, a := range answers {
			lacks := a.Status == query.Incomplete
			if lacks && !strings.HasPrefix(name, "long_seconds") {
				t.Fatalf("%s was complete, and is now complete only since %d", name, a.CompleteSince)
			}
			whole = whole && !lacks
		}
	}
	b.expectAll(after, 3000)
}

// While the clock of Redis is ahead, keys expire: what they held is missing, is read again from the log, and is whole then.
func TestWhatExpiredEarlyIsFilledAgain(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	server := redistest.New(t, redistest.Options{OwnClock: true})
	b.useRedis(server)
	b.config.BindInterval = 20 * time.Millisecond
	streams, _, _ := strings.Cut(definitions, "features:")
	r := defined.Registry(t, streams+"features:"+had)
	b.config.Registry = r
	b.run()
	b.writeStamped(0, 3000)
	b.expectAll(r, 3000)
	const ahead = 400 * 24 * time.Hour
	server.SetClock(ahead)
	noticed := map[int]protocol.Noticed{}
	for shard := range b.store.Shards() {
		noticed[shard] = protocol.Noticed{Ahead: time.Now().Add(ahead).UnixMilli()}
	}
	if keys := b.redis.Keys(t.Context(), "weir:*:user:*"); len(keys.Val()) > 0 || keys.Err() != nil {
		t.Fatalf("%v is left, %v; want all state to have expired", keys.Val(), keys.Err())
	}
	if err := b.store.Notice(t.Context(), noticed, func(int) {}); err != nil {
		t.Fatal(err)
	}
	server.SetClock(0)
	b.expectAll(r, 3000)
	b.writeStamped(3000, 3100)
	b.expectAll(r, 3100)
	b.awaitOneGeneration(r)
}

// A cap that is raised is filled again: the events that the lower one has cut off are read from the log again, and
// answers are no longer capped.
func TestGreaterCapsAreRefilled(t *testing.T) {
	t.Parallel()
	const caps = `
  recent: COUNT(2h, payment, user, tile=exact, max=%d)
  cents_met: SET(2h, payment, user, cents, max=%d)
`
	b := newFilling(t)
	b.config.BindInterval = 20 * time.Millisecond
	low, high := registryOf(t, fmt.Sprintf(caps, 20, 10)), registryOf(t, fmt.Sprintf(caps, 1500, 1500))
	b.config.Registry = low
	b.run()
	b.writeStamped(0, 3000)
	b.expectCapped(low, 3000, true)
	b.processor.Reload(high)
	b.awaitDefinitions(high)
	b.writeStamped(3000, 3100)
	b.expectCapped(high, 3100, false)
}

// expectCapped compares the features with caps with the model over events 0 to n-1.
func (b *bench) expectCapped(r *features.Registry, n int, capped bool) {
	b.t.Helper()
	names := []string{"recent", "cents_met"}
	testkit.Eventually(b.t, time.Minute, "caps are those of the definitions", func() (bool, string) {
		answers, _ := b.asked(r, names, stampAt(n-1))
		for name, a := range answers {
			if a.Status != query.Present || a.Capped != capped {
				return false, fmt.Sprintf("%s is %s, capped: %v", name, a.Status, a.Capped)
			}
		}
		return true, ""
	})
	b.expectAll(r, n)
}

// awaitDefinitions waits until a plan of the definitions is applied to all partitions.
func (b *bench) awaitDefinitions(r *features.Registry) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "definitions are taken", func() (bool, string) {
		h, err := b.store.History(b.t.Context())
		if err != nil {
			return false, err.Error()
		}
		for _, e := range h.PlanEpochs {
			if p := h.Plans[e.Version]; e.Last == state.MaxTime && (p == nil || p.Definitions() != r.Plan().Version) {
				return false, fmt.Sprint(h.PlanEpochs)
			}
		}
		return true, ""
	})
}
