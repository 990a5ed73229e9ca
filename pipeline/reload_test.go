package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// registryOf has the tests' definitions with additional lines, and with events that are never long
// before their records.
func registryOf(t testing.TB, more ...string) *features.Registry {
	t.Helper()
	return defined.Registry(t, strings.Replace(definitions, "timestamp: at", "timestamp: at\n    max_future: 1s", 1)+strings.Join(more, "\n"))
}

// bySecond counts in tiles of a second, which shows since when it counts.
const bySecond = "  by_second: COUNT(1h, payment, user, tile=1s, keep=30d)"

// stampAt is the time of the event i, and of its record.
func stampAt(i int) int64 { return at + int64(i)*200 }

func (b *bench) writeStamped(from, to int) {
	b.t.Helper()
	var list []kafka.Message
	for i := from; i < to; i++ {
		list = append(list, stamped(i))
	}
	b.write(list...)
}

func stamped(i int) kafka.Message {
	m := payment(i)
	m.Time = time.UnixMilli(stampAt(i))
	m.Value = fmt.Appendf(nil, `{"type":"payment","at":%d,"user":"u%d","cents":%d,"note":""}`, stampAt(i), i%7, i)
	return m
}

// since is since when a feature is complete.
func (b *bench) since(r *features.Registry, name string) int64 {
	b.t.Helper()
	f, ok := r.Feature(name)
	if !ok {
		b.t.Fatalf("no feature %s", name)
	}
	h, err := b.store.History(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return h.CompleteSince(f.Retained())
}

// expectSince waits until the events 0 to n-1 are applied, and expects by_second to hold exactly the events since it
// states to be complete.
func (b *bench) expectSince(r *features.Registry, n int) (since int64) {
	b.t.Helper()
	b.expect(n)
	return b.expectSeconds(r, n)
}

// expectSeconds is expectSince without the other features.
func (b *bench) expectSeconds(r *features.Registry, n int) (since int64) {
	b.t.Helper()
	b.committed(n)
	since = b.since(r, "by_second")
	if since == state.MaxTime {
		b.t.Fatal("no plan keeps by_second")
	}
	f, _ := r.Feature("by_second")
	// Older state may be pruned whenever a key is compacted.
	kept := f.Series[0].Horizon(stampAt(n - 1))
	first := max(state.FloorDiv(max(since, 0)+999, 1000), kept)
	for user := range 7 {
		want, got := 0, 0
		for i := range n {
			if i%7 == user && stampAt(i) >= first*1000 {
				want++
			}
		}
		reads := []state.Read{{Series: f.Series[0], Entity: fmt.Sprintf("u%d", user), First: first, Last: max(first, stampAt(n)/1000)}}
		state, err := b.store.Read(context.Background(), reads)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, bucket := range state[0].Buckets {
			got += int(bucket.Value.Num)
		}
		if got != want {
			b.t.Errorf("u%d has %d events since %d, want %d", user, got, since, want)
		}
	}
	return since
}

// While definitions change repeatedly as events flow, no event is lost or counts twice, and a new feature has all
// events since the time that it states.
func TestReloadWhileEventsFlow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	with, without := registryOf(t, bySecond), registryOf(t)
	b.config.Registry = without
	b.run()
	b.writeStamped(0, 50)
	b.expect(50)
	if since := b.since(with, "by_second"); since != state.MaxTime {
		t.Errorf("by_second is complete since %d, although no plan keeps it", since)
	}
	if since := b.since(with, "paid"); since != state.MinTime {
		t.Errorf("paid was always kept, but is complete only since %d", since)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 50; i < 3000; i += 10 {
			b.writeStamped(i, i+10)
		}
	})
	for i, r := range []*features.Registry{with, registryOf(t, bySecond, "  more: COUNT(1d, payment, user)"), without, with, registryOf(t, "  # nothing else"), with} {
		b.processor.Reload(r)
		b.awaitClaims(r, i)
	}
	writing.Wait()
	since := b.expectSince(with, 3000)
	if since <= stampAt(49) || since > stampAt(3000)+1001 {
		t.Errorf("by_second is complete since %d, want about the moment of its definition", since)
	}
	if since := b.since(with, "paid"); since != state.MinTime {
		t.Errorf("paid was always kept, but is complete only since %d", since)
	}
	b.writeStamped(3000, 4000)
	if again := b.expectSince(with, 4000); again != since {
		t.Errorf("by_second is complete since %d, before it was since %d", again, since)
	}
	b.awaitReady(b.processor)
}

// awaitClaims waits until a registry's plan is applied to all partitions.
func (b *bench) awaitClaims(r *features.Registry, step int) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, fmt.Sprintf("definitions %d are taken", step), func() (bool, string) {
		h, err := b.store.History(context.Background())
		if err != nil {
			return false, err.Error()
		}
		present := slices.DeleteFunc(h.PlanEpochs, func(e state.PlanEpoch) bool { return e.Last != state.MaxTime })
		return !slices.ContainsFunc(present, func(e state.PlanEpoch) bool {
			return (&state.Plan{Version: e.Version}).Definitions() != r.Plan().Version
		}), fmt.Sprint(present)
	})
}

// spy observes a store and its writer.
type spy struct {
	store.Store
	mu      sync.Mutex
	claimed map[state.Partition]time.Time // under their plans, the last claim
	applied map[state.Partition]time.Time // under their plans, the first batch
}

func (s *spy) Claim(ctx context.Context, p []state.Partition, by state.Claimant) ([]state.Claim, error) {
	at := time.Now() // Redis reads its clock somewhat later, before the reply
	claims, err := s.Store.Claim(ctx, p, by)
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range claims {
		if c.OwnedMs == 0 {
			s.claimed[p[i].WithPlan(by.Version)] = at
		}
	}
	return claims, err
}

// spyingWriter records when a plan is first applied; hold, if set, delays it.
type spyingWriter struct {
	store.Writer
	spy  *spy
	hold func()
}

func (w spyingWriter) Apply(ctx context.Context, b *state.Batch) error {
	w.spy.mu.Lock()
	for i := range b.Ranges {
		if _, ok := w.spy.applied[b.Ranges[i].Partition]; !ok {
			w.spy.applied[b.Ranges[i].Partition] = time.Now()
		}
	}
	w.spy.mu.Unlock()
	if w.hold != nil && len(b.Updates) > 0 {
		w.hold()
	}
	return w.Writer.Apply(ctx, b)
}

func (b *bench) watch(hold func()) *spy {
	s := &spy{Store: b.store, claimed: map[state.Partition]time.Time{}, applied: map[state.Partition]time.Time{}}
	b.config.Store = writing{s, func() store.Writer { return spyingWriter{b.store.NewWriter(), s, hold} }}
	return s
}

// A plan that lacks something that another plan kept is applied only when no process can still use the old history. A
// plan that keeps more is applied at once.
func TestPlansThatLackStateWaitForTheGracePeriod(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.Recovery.GracePeriod = time.Hour
	b.watch(nil)
	b.config.Registry = registryOf(t)
	b.run()
	b.writeStamped(0, 50)
	b.expect(50)
	with := registryOf(t, bySecond)
	b.processor.Reload(with)
	b.writeStamped(50, 100)
	b.expect(100) // without a wait
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}

	b.config.Recovery.GracePeriod = 300 * time.Millisecond
	spy := b.watch(nil)
	b.run()
	b.writeStamped(100, 200)
	b.expect(200)
	spy.mu.Lock()
	defer spy.mu.Unlock()
	if len(spy.applied) == 0 {
		t.Error("no batch was applied")
	}
	least := b.config.Recovery.GracePeriod - 2*time.Millisecond // Redis' clock has a resolution of milliseconds
	for p, at := range spy.applied {
		claimed, ok := spy.claimed[p]
		if waited := at.Sub(claimed); !ok || waited < least {
			t.Errorf("%v: claimed: %v, applied %v after that; want at least %v", p, ok, waited, least)
		}
	}
	if since := b.since(with, "by_second"); since != state.MaxTime {
		t.Errorf("by_second is complete since %d, although it is no longer kept", since)
	}
}

// A processor with old definitions that hangs with a batch under way, loses its partitions and then continues, changes
// nothing.
func TestProcessorResumesAfterHanging(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held, release := make(chan struct{}, 100), make(chan struct{})
	b.config.Recovery.GracePeriod = time.Hour
	b.config.Registry = registryOf(t)
	b.watch(func() {
		held <- struct{}{}
		<-release
	})
	b.run()
	stopFirst := b.stop
	b.writeStamped(0, 300)
	<-held

	// Another owner of the same partitions, unknown to the group.
	with := registryOf(t, bySecond)
	b.config.Group += "-2"
	b.config.Registry = with
	b.watch(nil)
	b.run()
	b.expectSince(with, 300)
	close(release)
	b.writeStamped(300, 2000)
	// Nothing is lost. The processor that continues may take partitions for its own definitions at any time until it
	// ends, also after the last event.
	b.expect(2000)
	if err := stopFirst(); err != nil {
		t.Fatal(err)
	}
	b.writeStamped(2000, 4000)
	b.expectSince(with, 4000)
}

// Skipped records do not count as applied events.
func TestStartAtTheEndIsNotCompleteForever(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.Recovery.Start = recovery.Latest
	b.write(payments(0, 30)...)
	before := time.Now().UnixMilli()
	b.run()
	testkit.Eventually(t, time.Minute, "readiness", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err == nil, fmt.Sprint(err)
	})
	if since := b.since(b.registry, "paid"); since < before || since > time.Now().Add(6*time.Minute).UnixMilli() {
		t.Errorf("complete since %d, want about now", since)
	}
}

// A record dated far into the future, in any stream, keeps a feature that is added later incomplete
// for a day, not forever.
func TestReloadAfterRecordFromFarFuture(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	b.run()
	stray := payment(0)
	stray.Value, stray.Time = []byte(`{"type":"stray"}`), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	b.write(payments(0, 30)...)
	b.write(stray)
	b.expect(30)
	b.committed(31)
	with := registryOf(t, bySecond)
	b.processor.Reload(with)
	b.awaitClaims(with, 0)
	b.write(payments(30, 60)...)
	b.expect(60)
	most := time.Now().Add(state.MaxAhead + 2*time.Second).UnixMilli()
	if since := b.since(with, "by_second"); since > most || since < at {
		t.Errorf("complete since %d, want no later than %d", since, most)
	}
}
