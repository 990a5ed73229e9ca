package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// lagOnce makes every second shard lag from one batch on, as if its master had failed to answer that batch only.
type lagOnce struct {
	store.Writer
	batches *atomic.Int64
}

func (w lagOnce) Apply(ctx context.Context, b *state.Batch) error {
	const lagging = 4
	if len(b.Updates) > 0 && w.batches.Add(1) == lagging {
		for i := range b.Ranges {
			for shard := 0; shard < len(b.Ranges[i].Progress); shard += 2 {
				b.Ranges[i].Lag(shard)
			}
		}
	}
	return w.Writer.Apply(ctx, b)
}

// Enriched events wait until lagging shards have caught up, even if their masters answer.
func TestEnrichedEventsWaitForLaggingShards(t *testing.T) {
	t.Parallel()
	b := newEnrichBench(t)
	// Commits are rarer than batches: shards catch up at each commit interval.
	b.config.Workers, b.config.CommitInterval = 1, 500*time.Millisecond
	var batches atomic.Int64
	b.config.Store = writing{b.store, func() store.Writer { return lagOnce{b.store.NewWriter(), &batches} }}
	sent := purchases(9, 900)
	b.write(sent...)
	b.run()
	b.committed(len(sent))
	b.checkEnriched(sent)
}

// A partition that cannot be fetched is reported, although the group and all other partitions go on.
func TestPartitionCannotBeFetched(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
	fault := b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Fetch}, Topic: "payments", Partitions: []int32{1}, Err: kerr.KafkaStorageError, Count: -1,
	})
	testkit.Eventually(t, time.Minute, "the partition is reported", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		part, ok := err.(interface{ Degraded() bool })
		stopped := gaugeOf(t, metrics, "weir_stopped_partitions", "error")
		return ok && part.Degraded() && stopped == 1 && strings.Contains(err.Error(), "payments/1: nothing can be fetched: "), fmt.Sprint(stopped, " stopped: ", err)
	})
	b.write(payments(30, 60)...)
	b.committed(50) // the other partitions
	fault.Remove()
	b.expect(60)
	testkit.Eventually(t, time.Minute, "nothing is reported", func() (bool, string) {
		err, stopped := b.processor.Ready(t.Context()), gaugeOf(t, metrics, "weir_stopped_partitions", "error")
		return err == nil && stopped == 0, fmt.Sprint(stopped, " stopped: ", err)
	})
}

// While Redis takes nothing, nothing is fetched, and the lag grows all the same.
func TestLagGrowsWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	metrics := prometheus.NewRegistry()
	b.config.Metrics, b.config.Workers = metrics, 1
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
	server.Kill()
	b.stopped("worker 0: ")
	lag := func(atLeast float64) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the lag", func() (bool, string) {
			greatest := gauge(t, metrics, "weir_lag_records")
			return greatest >= atLeast, fmt.Sprintf("%v, want at least %v", greatest, atLeast)
		})
	}
	// What fills the batch, what waits for it, and what nobody has fetched.
	for n := 30; n < 1530; n += 300 {
		b.write(payments(n, n+300)...)
		lag(1)
	}
	lag(300)
	server.Start()
	b.expect(1530)
	testkit.Eventually(t, time.Minute, "no lag", func() (bool, string) {
		greatest := gauge(t, metrics, "weir_lag_records")
		return greatest == 0, fmt.Sprint(greatest)
	})
}

// Events that wait for Redis in a batch count as lag, also when nothing follows them: Weir is stuck then.
func TestEventsInABatchAreLag(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	metrics := prometheus.NewRegistry()
	b.config.Metrics, b.config.Workers = metrics, 1
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
	server.Kill()
	b.stopped("worker 0: ")
	b.write(payments(30, 45)...)
	const measures = 3 // the third one begins when the second one is over
	looks := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Count: -1, Observe: true})
	testkit.Eventually(t, 30*time.Second, "the brokers are asked for the lag", func() (bool, string) {
		return looks.Hits() >= 3*measures, fmt.Sprint(looks.Hits(), " requests")
	})
	if lag := gauge(t, metrics, "weir_lag_records"); lag != 15/partitions {
		t.Errorf("the lag is %v, want %v", lag, 15/partitions)
	}
	server.Start()
	b.expect(45)
	testkit.Eventually(t, 30*time.Second, "no lag", func() (bool, string) {
		greatest := gauge(t, metrics, "weir_lag_records")
		return greatest == 0, fmt.Sprint(greatest)
	})
}

// A partition that failed is tried again soon, however rarely offsets are committed.
func TestRareCommitsDelayNoRetry(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.CommitInterval = time.Hour
	b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: deadLetters, Err: kerr.TopicAuthorizationFailed, Count: 1})
	bad := payment(0)
	bad.Value = []byte("{")
	b.write(bad)
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
}

// While the brokers do not agree on a leader, as of a topic that was just created, a partition waits without a warning.
func TestLeadersThatAreNotYetKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	lines := newLogLines(t)
	b.config.Logger = slog.New(slog.NewTextHandler(lines, nil))
	waiting := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.ListOffsets}, Topic: "payments", Err: kerr.NotLeaderForPartition, Count: 2})
	b.write(payments(0, 30)...)
	b.run()
	b.expect(30)
	if warnings := lines.count("level=WARN"); waiting.Hits() < 2 || warnings > 0 {
		t.Errorf("%d warnings of %d errors, want none of 2", warnings, waiting.Hits())
	}
}

// behindLinks is a bench that reaches Redis and Kafka through proxies.
func behindLinks(t *testing.T) (b *bench, redisLink, kafkaLink *testkit.FaultyProxy, write func(from, to int)) {
	kafkaLink = testkit.Proxy(t, "127.0.0.1:1")
	broker := kafkatest.NewBehind(t, kafkaLink, kafkatest.Options{})
	b, topic := newKafkaBench(t, broker, 1)
	b.config.Brokers = []string{kafkaLink.Addr()}
	server := redistest.New(t, redistest.Options{})
	redisLink = testkit.Proxy(t, server.Addr())
	linked := redis.NewClient(&redis.Options{Addr: redisLink.Addr(), ContextTimeoutEnabled: true, ReadTimeout: 4 * time.Second, DialTimeout: 4 * time.Second})
	t.Cleanup(func() { _ = linked.Close() })
	namespace := testkit.Namespace(t)
	b.config.Store = redisstore.New(linked, namespace, 8, redisstore.Deadlines(time.Second, 2*time.Second))
	b.store = redisstore.New(server.Client(t), namespace, 8) // of its own
	plain := producer(t, broker)
	return b, redisLink, kafkaLink, func(from, to int) { produce(t, plain, topic, payments(from, to)...) }
}

// A hanging proxy or load balancer keeps connections open and answers nothing. The processor waits, readiness says so,
// and each event counts once.
func TestHangingConnections(t *testing.T) {
	t.Parallel()
	b, redisLink, kafkaLink, write := behindLinks(t)
	write(0, 100)
	b.run()
	b.expect(100)
	awaitTrouble := func(says ...string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "readiness names the link", func() (bool, string) {
			err := fmt.Sprint(b.processor.Ready(t.Context()))
			return slices.ContainsFunc(says, func(s string) bool { return strings.Contains(err, s) }), err
		})
	}
	for round := range 3 {
		n := 100 + 200*round
		redisLink.Hang()
		write(n, n+100)
		awaitTrouble("has not answered since")
		redisLink.Heal()
		b.expect(n + 100)

		kafkaLink.Hang()
		write(n+100, n+200)
		if got := b.answers(); got == "" {
			t.Error("the answers are empty")
		}
		kafkaLink.Heal()
		b.expect(n + 200)
	}
	testkit.Eventually(t, time.Minute, "readiness", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
}
