package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// newFilling is a bench that fills new features.
func newFilling(t *testing.T) *bench {
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	b.config.Registry = registryOf(t)
	b.config.Backfill, b.config.BackfillRate = true, 1
	return b
}

// A feature that is defined while events flow is complete soon after, even if it was removed and added again.
func TestNewFeaturesAreFilled(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	with, without := registryOf(t, bySecond), b.config.Registry
	b.run()
	b.writeStamped(0, 1500)
	b.expect(1500)
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 1500; i < 4000; i += 10 {
			b.writeStamped(i, i+10)
		}
	})
	more := registryOf(t, bySecond, "  more: COUNT(1d, payment, user, tile=1h)")
	for i, r := range []*features.Registry{with, more, without, with, without, more} {
		b.processor.Reload(r)
		b.awaitClaims(r, i)
	}
	writing.Wait()
	b.awaitWhole(more, "by_second", state.MinTime)
	b.awaitWhole(more, "more", state.MinTime)
	if since := b.expectSince(more, 4000); since != state.MinTime {
		t.Errorf("complete since %d, want since MinTime", since)
	}
	b.writeStamped(4000, 4100)
	b.expectSince(more, 4100)
	b.awaitReady(b.processor)
}

// A processor reports its backfills, their progress and the time they take.
func TestBackfillsUnderWay(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.BackfillRate, b.config.MaxEvents = 0.01, 20 // slow enough to be seen
	b.run()
	b.writeStamped(0, 3000)
	b.expect(3000)
	if list := b.processor.Backfills(); len(list) > 0 {
		t.Errorf("without new features, these are being filled: %+v", list)
	}
	with := registryOf(t, bySecond)
	b.processor.Reload(with)
	var list []backfill.Running
	testkit.Eventually(t, 2*time.Minute, "the time left is known", func() (bool, string) {
		list = b.processor.Backfills()
		return len(list) == 1 && list[0].Left > 0, fmt.Sprintf("%+v", list)
	})
	if got := list[0]; !slices.Equal(got.Features, []string{"by_second"}) || got.Topic != "payments" || got.Total != 3000 || got.Applied <= 0 || got.Rate <= 0 {
		t.Errorf("being filled: %+v, want by_second with 3000 records of payments", got)
	}
}

// fillWatch is a writer that hands over the time of each batch of a backfill, and holds live batches: each takes a
// channel, if there is one, and waits until that is closed.
type fillWatch struct {
	store.Writer
	fills chan<- time.Time
	hold  <-chan chan struct{}
}

func (w fillWatch) Apply(ctx context.Context, b *state.Batch) error {
	if len(b.Updates) > 0 && b.Ranges[0].Partition.Fill != "" {
		select {
		case w.fills <- time.Now():
		case <-ctx.Done():
		}
	} else if len(b.Updates) > 0 {
		select {
		case released := <-w.hold:
			<-released
		default:
		}
	}
	return w.Writer.Apply(ctx, b)
}

// While a live batch is applied, a backfill goes on slowly.
func TestBackfillGivesWay(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.MaxEvents = 20
	fills, hold, released := make(chan time.Time), make(chan chan struct{}, 1), make(chan struct{})
	b.config.Store = writing{b.store, func() store.Writer { return fillWatch{b.store.NewWriter(), fills, hold} }}
	b.run()
	b.writeStamped(0, 3000)
	b.expect(3000)
	b.processor.Reload(registryOf(t, bySecond))
	<-fills
	hold <- released
	b.writeStamped(3000, 3001)
	hold <- released // a batch has taken the first
	<-fills
	<-fills
	began := <-fills
	var last time.Time
	for range 20 {
		last = <-fills
	}
	close(released)
	// It waits for 20 ms before each.
	if took := last.Sub(began); took < 300*time.Millisecond {
		t.Errorf("20 batches took %v beside a live one", took)
	}
}

// A feature that is removed while it is filled together with another one, and comes back once that one is filled, is filled too.
func TestFeatureComesBackAfterItsFillWasSplit(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.MaxEvents = 20
	fills, hold := make(chan time.Time), make(chan chan struct{}, 1)
	b.config.Store = writing{b.store, func() store.Writer { return fillWatch{b.store.NewWriter(), fills, hold} }}
	both := registryOf(t, bySecond, "  more: COUNT(1d, payment, user, tile=30m, keep=30d)")
	one := registryOf(t, bySecond)
	b.run()
	b.writeStamped(0, 3000)
	b.expect(3000)
	b.processor.Reload(both)
	for range 10 {
		<-fills
	}
	b.processor.Reload(one)
	go func() {
		for {
			select {
			case <-fills:
			case <-t.Context().Done():
				return
			}
		}
	}()
	b.awaitClaims(one, 1)
	b.awaitWhole(one, "by_second", state.MinTime)
	b.writeStamped(3000, 3100)
	b.expectSince(one, 3100)
	b.processor.Reload(both)
	testkit.Eventually(t, time.Minute, "the feature is filled again", func() (bool, string) {
		since, counted := b.counted(both, "more")
		return since == state.MinTime && counted == 3100, fmt.Sprint("complete since ", since, ", counts ", counted)
	})
}

// counted returns since when the state that a count is answered from is complete, and how many events of all users it has.
func (b *bench) counted(r *features.Registry, name string) (since int64, events int) {
	b.t.Helper()
	h, err := b.store.History(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	f, _ := r.Serving(h).Feature(name)
	var reads []state.Read
	for user := range 7 {
		reads = append(reads, state.Read{Series: f.Series[0], Entity: fmt.Sprintf("u%d", user), Last: stampAt(1 << 20)})
	}
	states, err := b.store.Read(b.t.Context(), reads)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, s := range states {
		for _, bucket := range s.Buckets {
			events += int(bucket.Value.Num)
		}
	}
	return h.CompleteSince(f.Retained()), events
}

// awaitWhole waits until a feature is complete since a moment.
func (b *bench) awaitWhole(r *features.Registry, name string, want int64) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, name+" is filled", func() (bool, string) {
		since := b.since(r, name)
		h, err := b.store.History(b.t.Context())
		return since == want, fmt.Sprintf("since %d, %+v %v", since, h.Fills, err)
	})
}

// Without backfill new features begin empty, and say so.
func TestNothingIsFilledWithoutBackfill(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.Backfill = false
	with := registryOf(t, bySecond)
	b.run()
	b.writeStamped(0, 300)
	b.expect(300)
	b.processor.Reload(with)
	b.awaitClaims(with, 0)
	b.writeStamped(300, 600)
	if since := b.expectSince(with, 600); since < stampAt(299) {
		t.Errorf("complete since %d, although nothing was filled", since)
	}
}

// A backfill that is interrupted, and another that continues it, count each record once. Records
// older than any new window needs are not read.
func TestBackfillContinuesInAnotherProcessor(t *testing.T) {
	t.Parallel()
	b := newFilling(t)
	b.config.BackfillRate = 0.01
	b.config.MaxEvents = 50
	with := registryOf(t, strings.Replace(bySecond, "keep=30d", "keep=0s, delay=0s", 1))
	b.run()
	b.writeStamped(0, 40000)
	b.committed(40000)
	b.processor.Reload(with)
	b.awaitClaims(with, 0)
	var filled int64
	testkit.Eventually(t, time.Minute, "it has begun", func() (bool, string) {
		h, err := b.store.History(t.Context())
		if err != nil || len(h.Fills) == 0 {
			return false, fmt.Sprint(h, err)
		}
		filled = h.Fills[0].Filled
		return filled > 0 && !h.Fills[0].Whole, fmt.Sprintf("%+v", h.Fills)
	})
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.config.Registry, b.config.BackfillRate = with, 1
	b.config.Metrics = nil
	b.processor = pipeline.New(b.config)
	b.run()
	testkit.Eventually(t, time.Minute, "it is whole", func() (bool, string) {
		since := b.since(with, "by_second")
		return since < stampAt(39000), fmt.Sprint(since)
	})
	since := b.expectSeconds(with, 40000)
	// An hour, two tiles of a second, the second by which events may be ahead, and a minute.
	if want := stampAt(39999) - 3_600_000 - 2000 - 1000 - 60_000 + 1000; since != want {
		t.Errorf("complete since %d, want %d, which its window needs", since, want)
	}
	h, err := b.store.History(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f := h.Fills[0]; f.All >= 40000*8 || f.Filled != f.All {
		t.Errorf("%d of %d offsets were read: want all, and only those that are needed", f.Filled, f.All)
	}
}
