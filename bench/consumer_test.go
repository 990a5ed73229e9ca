package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/bench/textbook"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/ignite"
	"github.com/weir-stream/weir/store/ignite/thin"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// consumerEnv makes the binary work as a consumer, so that the CPU time of its process is the
// consumer's alone. It holds an order in JSON.
const consumerEnv = "WEIR_BENCH_CONSUMER"

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // as in Weir's main, for every consumer measured
	if addr := os.Getenv(apiEnv); addr != "" {
		if err := answer(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if text := os.Getenv(consumerEnv); text != "" {
		if err := consume(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	testkit.Main(m)
}

// order describes a consumer's run: it reads the topics until the group has applied Until events in
// total.
type order struct {
	Consumer string // weir or textbook
	Brokers  []string
	Redis    string
	Ignite   string // address of a node to use in place of Redis
	Until    int64
	Profile  string // file for a CPU profile; empty for none

	// For weir: a file of definitions beside the shipped ones, empty for none, and the rate at which new features are
	// filled, 0 for no backfill.
	More string
	Rate float64
}

// outcome is the result of a consumer's run.
type outcome struct {
	CPU     float64 // seconds
	Mallocs uint64  // heap objects allocated
	Steps   []step
	Filling []backfill.Running // at the end
}

// step is a part of a partition that was applied: everything before Offset.
type step struct {
	recordID
	At time.Time
}

// consumer is a consumer in a process of its own.
type consumer struct {
	applied atomic.Int64  // events, as last reported
	started chan struct{} // closed when it reads its partitions
	ended   chan outcome  // receives one outcome
}

// said is a report of a consumer's process, one JSON object for each: its progress once it has
// started, and its outcome at the end.
type said struct {
	Applied int64
	Outcome *outcome
}

// start runs a consumer.
func (o order) start(b *testing.B) *consumer {
	text, err := json.Marshal(o)
	if err != nil {
		b.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(b.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), consumerEnv+"="+string(text))
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	c := &consumer{started: make(chan struct{}), ended: make(chan outcome, 1)}
	go func() {
		defer close(c.ended)
		started := sync.OnceFunc(func() { close(c.started) })
		defer started()
		for decoder := json.NewDecoder(out); ; started() {
			var s said
			if err := decoder.Decode(&s); err != nil {
				b.Errorf("%s: %v\n%s", o.Consumer, errors.Join(err, cmd.Wait()), log.String())
				return
			}
			if s.Outcome == nil {
				c.applied.Store(s.Applied)
				continue
			}
			if err := cmd.Wait(); err != nil {
				b.Errorf("%s: %v\n%s", o.Consumer, err, log.String())
				return
			}
			c.ended <- *s.Outcome
			return
		}
	}()
	return c
}

// wait returns the consumer's outcome at its end.
func (c *consumer) wait(b *testing.B) outcome {
	b.Helper()
	found, ok := <-c.ended
	if !ok {
		b.FailNow()
	}
	return found
}

// consume carries out an order and writes the outcome to standard output.
func consume(text string) error {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	p := &progress{next: make(map[recordID]int64), until: o.Until, out: json.NewEncoder(os.Stdout), filling: func() []backfill.Running { return nil }}
	p.reached = func() {
		p.left = p.filling()
		cancel()
	}
	run := map[string]func(context.Context, order, *progress) error{"weir": runWeir, "textbook": runTextbook}[o.Consumer]
	if o.Profile != "" {
		file, err := os.Create(o.Profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpuSeconds()
	if err := run(ctx, o, p); err != nil {
		return err
	}
	if p.sum < p.until {
		return fmt.Errorf("%d of %d events applied in 10 minutes", p.sum, p.until)
	}
	found := outcome{CPU: cpuSeconds() - start, Steps: p.steps}
	runtime.ReadMemStats(&after)
	found.Filling = p.left
	found.Mallocs = after.Mallocs - before.Mallocs
	return p.say(said{Outcome: &found})
}

// progress tracks how far a consumer has got.
type progress struct {
	mu      sync.Mutex
	next    map[recordID]int64 // by partition
	sum     int64
	steps   []step
	until   int64
	reached func()
	filling func() []backfill.Running // lists the backfills under way
	left    []backfill.Running        // those when until was reached
	out     *json.Encoder
}

func (p *progress) say(s said) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Encode(s)
}

// report writes the progress every 10 ms until the context ends.
func (p *progress) report(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for ctx.Err() == nil {
		p.mu.Lock()
		s := said{Applied: p.sum}
		p.mu.Unlock()
		if p.say(s) != nil {
			return // the reader is gone
		}
		<-tick.C
	}
}

// reach records that everything in a partition before an offset is applied.
func (p *progress) reach(topic string, partition int32, offset int64, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := recordID{Topic: topic, Partition: partition}
	if offset <= p.next[id] {
		return
	}
	p.sum += offset - p.next[id]
	p.next[id] = offset
	p.steps = append(p.steps, step{recordID{topic, partition, offset}, at})
	if p.sum >= p.until {
		p.reached()
	}
}

const namespace = "weir"

func runWeir(ctx context.Context, o order, p *progress) error {
	definitions := []string{"../config/features"}
	if o.More != "" {
		definitions = append(definitions, o.More)
	}
	registry, err := definition.Load(definitions...)
	if err != nil {
		return err
	}
	cfg := config.Default()
	state, end := o.store(cfg)
	defer end()
	processor := pipeline.New(pipeline.Config{
		Registry: registry, Store: watchedStore{state, p},
		Transport: &kafka.Transport{}, Brokers: o.Brokers,
		Group: namespace, DeadLetterTopic: deadLetters, Workers: cfg.Processor.WorkerCount(),
		MaxEvents: cfg.Processor.Batch.MaxEvents, MaxBytes: int(cfg.Processor.Batch.MaxBytes),
		Freshness: cfg.Processor.Freshness, CommitInterval: cfg.Processor.CommitInterval,
		FetchMaxBytes: int32(cfg.Kafka.Fetch.MaxBytes), FetchPartitionMaxBytes: int32(cfg.Kafka.Fetch.PartitionMaxBytes),
		Backfill: o.Rate > 0, BackfillRate: o.Rate,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	p.filling = processor.Backfills
	go func() {
		for processor.Stats().Assigned == 0 || processor.Ready(ctx) != nil {
			time.Sleep(10 * time.Millisecond)
		}
		p.report(ctx)
	}()
	if err := processor.Run(ctx); err != nil {
		return err
	}
	if dead := processor.Stats().Dead; dead > 0 {
		return fmt.Errorf("%d events became dead letters", dead)
	}
	return nil
}

// store returns the store of an order, and a function that closes its connections.
func (o *order) store(cfg *config.Config) (s store.Store, end func()) {
	if o.Ignite != "" {
		client := thin.New(thin.Config{Addresses: []string{o.Ignite}, Login: thin.Login{Timeout: 10 * time.Second}, Request: time.Minute})
		s := ignite.New(ignite.Config{
			Client: client, Namespace: namespace, Shards: cfg.Shards, Slack: cfg.Store.ExpirySlack, Mutations: cfg.Store.CallMutations,
		})
		return s, func() { _ = client.Close() }
	}
	client := redis.NewClient(&redis.Options{Addr: o.Redis})
	return redisstore.New(client, namespace, cfg.Shards), func() { _ = client.Close() }
}

// watchedStore is a store whose writers report progress.
type watchedStore struct {
	store.Store
	progress *progress
}

func (s watchedStore) NewWriter() store.Writer {
	return &watchedWriter{s.Store.NewWriter(), s.progress}
}

// watchedWriter reports what the writer applies.
type watchedWriter struct {
	store.Writer
	progress *progress
}

func (w *watchedWriter) Apply(ctx context.Context, b *state.Batch) error {
	if err := w.Writer.Apply(ctx, b); err != nil {
		return err
	}
	now := time.Now()
	for _, r := range b.Ranges {
		if r.Partition.Fill != "" {
			continue // events of a backfill are not of the live stream
		}
		topic := r.Partition.Topic
		w.progress.reach(topic, r.Partition.ID, r.To, now)
	}
	return nil
}

func runTextbook(ctx context.Context, o order, p *progress) error {
	client := redis.NewClient(&redis.Options{Addr: o.Redis})
	defer client.Close()
	go p.report(ctx) // kafka-go's Reader does not say when it has joined
	consumer := textbook.Consumer{
		Brokers: o.Brokers, Group: "textbook", Topics: []string{transactions, logins}, Redis: client,
		Applied: func(messages []kafka.Message) {
			now := time.Now()
			for _, m := range messages {
				p.reach(m.Topic, int32(m.Partition), m.Offset+1, now)
			}
		},
	}
	return consumer.Run(ctx)
}
