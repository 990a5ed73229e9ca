package pipeline_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline"
)

// deploy runs a processor in a group of its own beside those that run already.
func (b *bench) deploy(group string, r *features.Registry) (p *pipeline.Processor, stop func() error, metrics *prometheus.Registry) {
	b.t.Helper()
	metrics = prometheus.NewRegistry()
	b.config.Group, b.config.Registry, b.config.Metrics = group, r, metrics
	b.run()
	return b.processor, b.stop, metrics
}

// awaitSuperseded waits until a processor has stopped all its partitions for a group that began
// later, and says so.
func (b *bench) awaitSuperseded(p *pipeline.Processor, metrics *prometheus.Registry, by string, r *features.Registry) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "all partitions are superseded", func() (bool, string) {
		err := fmt.Sprint(p.Ready(b.t.Context()))
		n := gaugeOf(b.t, metrics, "weir_stopped_partitions", "superseded")
		says := strings.Count(err, fmt.Sprintf("consumer group %q applies other definitions (plan %s) to this namespace, began later (", by, r.Plan().Version))
		return n == partitions && says == partitions, fmt.Sprint(n, " are stopped: ", err)
	})
}

func (b *bench) awaitReady(p *pipeline.Processor) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "readiness", func() (bool, string) {
		err := p.Ready(b.t.Context())
		return err == nil, fmt.Sprint(err)
	})
}

// Two deployments with different definitions on one namespace do not take its partitions from each other forever: the
// one that began last gets them, and the other one stops its partitions and says why. Nothing is lost or counts twice.
func TestOneOfTwoDeploymentsWins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	old, with := registryOf(t), registryOf(t, bySecond)
	first, stopFirst, firstMetrics := b.deploy("blue", old)
	b.writeStamped(0, 100)
	b.expect(100)

	second, _, secondMetrics := b.deploy("green", with)
	b.awaitReady(second)
	b.writeStamped(100, 200) // the first one finds out
	b.expect(200)
	b.awaitSuperseded(first, firstMetrics, "green", with)
	taken := count(t, secondMetrics, "weir_rewinds_total")
	for n := 200; n < 600; n += 50 {
		b.writeStamped(n, n+50)
		b.expect(n + 50)
	}
	if again := count(t, secondMetrics, "weir_rewinds_total") - taken; again != 0 {
		t.Errorf("partitions were taken from the deployment that began last %v times", again)
	}
	b.awaitSuperseded(first, firstMetrics, "green", with) // as before
	if stats := first.Stats(); stats.Assigned != partitions {
		t.Errorf("the superseded processor has %d partitions of its group, want %d", stats.Assigned, partitions)
	}
	since := b.since(with, "by_second")

	// After a restart it is the one that began last.
	if err := stopFirst(); err != nil {
		t.Fatal(err)
	}
	third, _, _ := b.deploy("blue", old)
	b.awaitReady(third)
	b.writeStamped(600, 700)
	b.expect(700)
	b.awaitSuperseded(second, secondMetrics, "blue", old)
	if later := b.since(with, "by_second"); later <= since {
		t.Errorf("by_second is complete since %d, and was since %d: want a later moment, since the last deployment does not keep it", later, since)
	}
}

// Within a group the group decides which member has a partition: it takes the partition even if another plan had it.
func TestPlansOfOneGroupAreNoRivals(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	b.deploy("blue", registryOf(t))
	b.writeStamped(0, 50)
	b.expect(50)
	old, config := b.processor, b.config
	next, stopNext, _ := b.deploy("blue", registryOf(t, bySecond))
	testkit.Eventually(t, time.Minute, "both have partitions", func() (bool, string) {
		a, c := old.Stats().Assigned, next.Stats().Assigned
		return a > 0 && c > 0 && a+c == partitions, fmt.Sprint(a, " and ", c)
	})
	b.writeStamped(50, 100)
	b.expect(100)
	if err := stopNext(); err != nil {
		t.Fatal(err)
	}
	b.config = config
	testkit.Eventually(t, time.Minute, "the old one has all partitions", func() (bool, string) {
		n := old.Stats().Assigned
		return n == partitions, fmt.Sprint(n)
	})
	b.writeStamped(100, 150)
	b.expect(150)
}
