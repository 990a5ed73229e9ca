package pipeline_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// gapWatch records when a gap was about to be written in each partition, and how long after that
// its first records were applied.
type gapWatch struct {
	store.Store
	mu       sync.Mutex
	recorded map[state.Partition]time.Time
	waited   map[state.Partition]time.Duration
}

func (g *gapWatch) record(p state.Partition) {
	g.mu.Lock()
	defer g.mu.Unlock()
	p = p.Itself()
	g.recorded[p] = time.Now()
}

func (g *gapWatch) Place(ctx context.Context, placements ...state.Placement) (int, error) {
	for i := range placements {
		if placements[i].Gap > 0 {
			g.record(placements[i].Partition)
		}
	}
	return g.Store.Place(ctx, placements...)
}

func (g *gapWatch) Gap(ctx context.Context, p state.Partition, until int64) error {
	g.record(p)
	return g.Store.Gap(ctx, p, until)
}

func (g *gapWatch) NewWriter() store.Writer { return gapWriter{g.Store.NewWriter(), g} }

type gapWriter struct {
	store.Writer
	watch *gapWatch
}

func (w gapWriter) Apply(ctx context.Context, b *state.Batch) error {
	w.watch.mu.Lock()
	for i := range b.Updates {
		p := b.Ranges[b.Updates[i].Range].Partition
		p = p.Itself()
		if _, known := w.watch.waited[p]; !known {
			w.watch.waited[p] = time.Since(w.watch.recorded[p])
		}
	}
	w.watch.mu.Unlock()
	return w.Writer.Apply(ctx, b)
}

// watchGaps lengthens the grace period after gaps so that it can be observed.
func (b *bench) watchGaps() *gapWatch {
	watch := &gapWatch{Store: b.store, recorded: map[state.Partition]time.Time{}, waited: map[state.Partition]time.Duration{}}
	b.config.Store, b.config.Recovery.GracePeriod = watch, time.Second
	return watch
}

// checkGaps expects a gap in each of n partitions, and no record applied before all servers know of it.
func (b *bench) checkGaps(watch *gapWatch, n int) {
	b.t.Helper()
	watch.mu.Lock()
	defer watch.mu.Unlock()
	if len(watch.recorded) != n || len(watch.waited) != n {
		b.t.Errorf("%d partitions have a gap and %d were applied, want %d of each", len(watch.recorded), len(watch.waited), n)
	}
	for p, waited := range watch.waited {
		if least := b.config.Recovery.GracePeriod - 2*time.Millisecond; waited < least { // Redis' clock has a resolution of milliseconds
			b.t.Errorf("records of %v were applied %v after its gap was recorded, want at least %v", p, waited, least)
		}
	}
}

// Questions share a history for a moment. Records after a gap are applied only once no answer is
// based on a history without the gap.
func TestRecordsAfterAGapWaitForTheGracePeriod(t *testing.T) {
	t.Parallel()
	t.Run("records are lost", func(t *testing.T) {
		b := newBench(t)
		b.write(payments(0, 30)...)
		b.run()
		b.committed(30)
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
		b.write(payments(30, 60)...)
		for partition := range int32(partitions) {
			if err := b.broker.DeleteRecords("payments", partition, 15); err != nil {
				t.Fatal(err)
			}
		}
		b.config.Recovery.ContinueOnLoss = true
		watch := b.watchGaps()
		b.run()
		b.committed(60)
		b.checkGaps(watch, partitions)
	})
	t.Run("a batch is set aside", func(t *testing.T) {
		broker := kafkatest.Shared(t)
		b, topic := newKafkaBench(t, broker, 1)
		plain := producer(t, broker)
		bomber := producer(t, broker, kgo.ProducerBatchMaxBytes(100<<20), kgo.ProducerBatchCompression(kgo.GzipCompression()))
		produce(t, bomber, topic, kafka.Message{Value: make([]byte, 65<<20)})
		produce(t, plain, topic, payments(0, 20)...)
		b.config.SetBrokenAside = true
		watch := b.watchGaps()
		b.run()
		b.expect(20)
		b.checkGaps(watch, 1)
	})
}
