package pipeline_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/testkit"
)

// One worker processes all partitions while the load is low, and all share them while it is high. Each event counts
// once while partitions move between workers.
func TestPartitionsFollowTheLoad(t *testing.T) {
	b := newBench(t)
	metrics, lines := prometheus.NewRegistry(), &logLines{}
	b.config.Metrics = metrics
	b.config.Logger = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.config.Workers, b.config.MaxEvents = 3, 2
	b.config.BalanceInterval, b.config.Freshness = 20*time.Millisecond, time.Millisecond
	b.run()
	logged := func(message string, times int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, message, func() (bool, string) {
			n := lines.count(message)
			return n >= times, fmt.Sprint(n)
		})
	}
	total := 0
	for wave := range 4 {
		logged("one worker processes all partitions", wave+1)
		b.write(payments(total, total+1500)...)
		total += 1500
		logged("all workers share the partitions", wave+1)
	}
	b.expect(total)
	b.committed(total)
	if n := count(t, metrics, "weir_events_total"); int(n) != total || lines.count("went back in time") > 0 {
		t.Errorf("%v events were applied, want each of %d once", n, total)
	}
}
