package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

func TestMain(m *testing.M) { testkit.Main(m) }

const definitions = `
streams:
  payment:
    topic: payments
    match: type == "payment"
    timestamp: at
    fields: {user: string, cents: int, note: {type: string, required: true}}
features:
  paid: SUM(1d, payment, cents, user)
  payments: COUNT(lifetime, payment, user)
`

// bench is a processor with its broker, its store and its events.
type bench struct {
	t         *testing.T
	broker    *kfake.Cluster
	store     *redisstore.Store
	redis     redis.UniversalClient
	registry  *features.Registry
	config    pipeline.Config
	processor *pipeline.Processor
	stop      func() error
	done      chan error // what Run returned
}

const (
	partitions  = 3
	deadLetters = "dead"
	at          = int64(1532496076032)
)

func newBench(t *testing.T) *bench {
	return newBenchOf(t, definitions, map[string]int{"payments": partitions, deadLetters: 1})
}

// newBenchOf is a bench with other definitions, and their topics with their numbers of partitions.
func newBenchOf(t *testing.T, definitions string, topics map[string]int) *bench {
	registry := defined.Registry(t, definitions)
	b := &bench{
		t: t, registry: registry,
		broker: kafkatest.Embedded(t, topics),
		redis:  redistest.Shared(t).Client(t),
	}
	b.store = redisstore.New(b.redis, testkit.Namespace(t), 8)
	transport := &kafka.Transport{MetadataTTL: 100 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	b.config = pipeline.Config{
		Registry: registry, Store: b.store, Namespace: "shop",
		Transport: transport, Brokers: b.broker.ListenAddrs(),
		Group: testkit.Namespace(t), DeadLetterTopic: deadLetters, Workers: 2,
		CommitInterval: 50 * time.Millisecond, MaxEvents: 100, MaxBytes: 1 << 20,
	}
	return b
}

// run starts the processor. stop ends it and returns the result of Run.
func (b *bench) run() {
	b.t.Helper()
	b.processor = pipeline.New(b.config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	b.done = done
	go func(p *pipeline.Processor) { done <- p.Run(ctx) }(b.processor)
	b.stop = func() error {
		cancel()
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(time.Minute):
			b.t.Fatal("the processor did not stop in time")
			return nil
		}
	}
	b.t.Cleanup(func() { _ = b.stop() })
}

// write produces records to the partition of each.
func (b *bench) write(records ...kafka.Message) {
	b.t.Helper()
	transport := &kafka.Transport{} // MetadataTTL is also how long the broker's first answer may take: here the default
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(b.broker.ListenAddrs()...), Transport: transport, BatchTimeout: time.Millisecond,
		ReadTimeout: time.Minute, WriteTimeout: time.Minute, // records that are sent again count twice
		RequiredAcks: kafka.RequireAll,
		Balancer:     kafka.BalancerFunc(func(m kafka.Message, ids ...int) int { return ids[int(m.Key[0])%len(ids)] }),
	}
	defer w.Close()
	if err := w.WriteMessages(context.Background(), records...); err != nil {
		b.t.Fatal(err)
	}
}

func payment(i int) kafka.Message {
	return kafka.Message{
		Topic: "payments", Key: []byte{byte(i % partitions)}, Time: time.UnixMilli(at),
		Value: fmt.Appendf(nil, `{"type":"payment","at":%d,"user":"u%d","cents":%d,"note":""}`, at, i%7, i),
	}
}

func payments(from, to int) []kafka.Message {
	var list []kafka.Message
	for i := from; i < to; i++ {
		list = append(list, payment(i))
	}
	return list
}

// answers asks for both features of all users.
func (b *bench) answers() string {
	b.t.Helper()
	names := []string{"paid", "payments"}
	var reading query.Reading
	reading.Reset(at)
	for user := range 7 {
		for _, name := range names {
			f, _ := b.registry.Feature(name)
			reading.Want(f, fmt.Sprintf("u%d", user), at)
		}
	}
	err := reading.Read(context.Background(), b.store)
	if errors.Is(err, state.ErrUnavailable) { // Redis was just started
		return err.Error()
	}
	if err != nil {
		b.t.Fatal(err)
	}
	var text strings.Builder
	for user := range 7 {
		for _, name := range names {
			var answer query.Answer
			reading.Next(&answer)
			fmt.Fprintf(&text, "u%d %s=%s ", user, name, answer.Value.AppendText(nil))
		}
	}
	return text.String()
}

// expect waits until the answers are those after payments 0 to n-1, and then checks that they do not change.
func (b *bench) expect(n int) {
	b.t.Helper()
	var sums, counts [7]int
	for i := range n {
		sums[i%7] += i
		counts[i%7]++
	}
	var want strings.Builder
	for user := range 7 {
		fmt.Fprintf(&want, "u%d paid=%d u%d payments=%d ", user, sums[user], user, counts[user])
	}
	testkit.Eventually(b.t, 2*time.Minute, "answers", func() (bool, string) {
		got := b.answers()
		return got == want.String(), "got  " + got + "\nwant " + want.String()
	})
}

// committed waits until the group has committed the whole topic.
func (b *bench) committed(total int) {
	b.t.Helper()
	client := &kafka.Client{Addr: kafka.TCP(b.broker.ListenAddrs()...), Transport: b.config.Transport}
	testkit.Eventually(b.t, 2*time.Minute, "committed offsets", func() (bool, string) {
		reply, err := client.OffsetFetch(context.Background(), &kafka.OffsetFetchRequest{
			GroupID: b.config.Group, Topics: map[string][]int{"payments": {0, 1, 2}},
		})
		if err != nil {
			return false, err.Error()
		}
		sum := 0
		for _, p := range reply.Topics["payments"] {
			sum += int(p.CommittedOffset)
		}
		return sum == total, fmt.Sprintf("%d of %d", sum, total)
	})
}

func (b *bench) progress() [][]state.Position {
	b.t.Helper()
	var list []state.Partition
	for i := range partitions {
		list = append(list, state.Partition{Topic: "payments", ID: int32(i)})
	}
	progress, err := b.store.Progress(context.Background(), list)
	if err != nil {
		b.t.Fatal(err)
	}
	return progress
}

func TestEventsAreApplied(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(payments(0, 500)...)
	b.run()
	b.expect(500)
	b.write(payments(500, 1200)...)
	b.expect(1200)
	b.committed(1200)
	b.awaitReady(b.processor)
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	for i, p := range b.progress() {
		if state.Lowest(p) != state.Highest(p) {
			t.Errorf("partition %d: the shards stopped at different offsets: %v", i, p)
		}
	}
	if s := b.processor.Stats(); s.Applied != 1200 || s.Dead != 0 {
		t.Errorf("stats %+v, want 1200 applied", s)
	}
}

// writing is a store with other writers.
type writing struct {
	store.Store
	newWriter func() store.Writer
}

func (w writing) NewWriter() store.Writer { return w.newWriter() }

// slowStore answers reads of the progress only when released.
type slowStore struct {
	store.Store
	let chan struct{}
}

func (s slowStore) Claim(ctx context.Context, p []state.Partition, by state.Claimant) ([]state.Claim, error) {
	<-s.let
	return s.Store.Claim(ctx, p, by)
}

// A processor is not ready until all assigned partitions are read.
func TestReadyOnceAllPartitionsAreRead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	slow := slowStore{b.store, make(chan struct{})}
	b.config.Store = slow
	b.run()
	testkit.Eventually(t, time.Minute, "readiness names the partitions", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err != nil && strings.Contains(err.Error(), "payments/0: its progress was not read yet"), fmt.Sprint(err)
	})
	close(slow.let)
	b.awaitReady(b.processor)
}
