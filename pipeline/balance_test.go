package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// One worker processes all partitions while the load is low, and all share them while it is high. Each event counts
// once while partitions move between workers.
func TestPartitionsFollowTheLoad(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics, lines := prometheus.NewRegistry(), newLogLines(t)
	b.config.Metrics = metrics
	b.config.Logger = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.config.Workers, b.config.MaxEvents = 3, 2
	b.config.BalanceInterval, b.config.Freshness = 20*time.Millisecond, time.Millisecond
	b.run()
	logged := func(message string, times int, until func()) {
		t.Helper()
		testkit.Eventually(t, time.Minute, message, func() (bool, string) {
			until()
			n := lines.count(message)
			return n >= times, fmt.Sprint(n)
		})
	}
	total := 0
	for wave := range 4 {
		logged("one worker processes all partitions", wave+1, func() {})
		logged("the workers share the partitions by their load", wave+1, func() {
			if b.processor.Stats().Applied == int64(total) { // else a slow machine has to apply more and more
				b.write(payments(total, total+500)...)
				total += 500
			}
		})
	}
	b.expect(total)
	b.committed(total)
	if n := count(t, metrics, "weir_events_total"); int(n) != total || lines.count("went back in time") > 0 {
		t.Errorf("%v events were applied, want each of %d once", n, total)
	}
}

// appliers records which writer, and so which worker, applied each partition last.
type appliers struct {
	mu   sync.Mutex
	last map[int32]*appliersWriter
}

type appliersWriter struct {
	store.Writer
	of *appliers
}

func (w *appliersWriter) Apply(ctx context.Context, b *state.Batch) error {
	err := w.Writer.Apply(ctx, b)
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	for _, r := range b.Ranges {
		w.of.last[r.Partition.ID] = w
	}
	return err
}

// Two partitions that are hot come to different workers, whatever their numbers. Each event counts once.
func TestHotPartitionsPart(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, definitions, map[string]int{"payments": 4, deadLetters: 1})
	metrics, of := prometheus.NewRegistry(), &appliers{last: make(map[int32]*appliersWriter)}
	b.config.Metrics = metrics
	b.config.Store = writing{b.store, func() store.Writer { return &appliersWriter{b.store.NewWriter(), of} }}
	b.config.MaxEvents, b.config.BalanceInterval, b.config.Freshness = 2, 20*time.Millisecond, time.Millisecond
	b.run()
	total := 0
	testkit.Eventually(t, time.Minute, "partitions 0 and 2 are applied by different workers", func() (bool, string) {
		records := payments(total, total+600)
		for i := range records {
			records[i].Key = []byte{byte(2 * (i % 2))}
		}
		b.write(records...)
		total += len(records)
		b.expect(total)
		of.mu.Lock()
		defer of.mu.Unlock()
		return of.last[0] != of.last[2], ""
	})
	b.committed(total) // what is applied may not be counted yet, what is committed is
	if n := count(t, metrics, "weir_events_total"); int(n) != total {
		t.Errorf("%v events were applied, want each of %d once", n, total)
	}
}

// Events that come fast are not collected for as long as they may wait: some for each shard are enough.
func TestManyEventsWaitForLess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics, b.config.Workers, b.config.MaxEvents = metrics, 1, 1_000_000
	b.config.Freshness, b.config.CommitInterval = time.Second, time.Minute
	b.run()
	began, total := time.Now(), 0
	testkit.Eventually(t, time.Minute, "there are more batches than times to wait", func() (bool, string) {
		b.write(payments(total, total+60)...)
		total += 60
		n := count(t, metrics, "weir_batches_total")
		return n > 5+2*time.Since(began).Seconds(), fmt.Sprint(n, " batches, ", total, " events, ", time.Since(began))
	})
}
