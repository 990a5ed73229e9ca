// Package demo implements weir demo: a node with a broker, a Redis and a source of events in the same process.
package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/cmd/weir/node"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/embedded"
	"github.com/weir-stream/weir/internal/generate"
)

const (
	demoPartitions = 4
	// demoShards are few: in the embedded Redis, each script call costs more than its mutations.
	demoShards = 8
	// demoAhead is how many events may be ahead of the processor, which bounds the broker's memory.
	demoAhead = 5_000
	// demoRetention is the broker's retention of a partition, in bytes: twice what demoAhead events
	// take in one partition. It removes whole segments, so these are short.
	demoRetention, demoSegment = "4194304", "524288"
	// demoMemory is the memory limit of the garbage collector, in bytes: garbage comes fast here.
	demoMemory = 256 << 20
	// demoUsers are so many that the busiest of them is not a fraud.
	demoUsers = 20_000
	// pastDays is how far back the first events of a demo go, pastEvents their number for each day.
	pastDays, pastEvents = 30, 3_000
	// demoPoison is the share of events that cannot be used, when not all events must be applied.
	demoPoison = 0.0005
	// demoPatience is how long the demo waits without progress.
	demoPatience = 30 * time.Second
)

// demoOptions are the flags of weir demo.
type demoOptions struct {
	listen   string
	features []string
	events   int64
	exit     bool
	rate     float64
	seed     uint64
	days     int
	root     func() *cobra.Command
}

// New makes weir demo, which shows how others of root's commands are used.
func New(root func() *cobra.Command) *cobra.Command {
	o := demoOptions{root: root}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run everything in one process, with made-up events",
		Long: `Run a broker, a Redis, a source of made-up events, the processor and the API in
one process, with nothing else installed. Nothing is kept when it ends.

It begins with a month of events, reports which frauds are hidden in them, and goes
on with new ones: a few are late, out of order, repeated, or unusable.

With --events and --exit it ends when all events are applied, and prints one
line of JSON on the standard output; it fails unless every one was applied.`,
		Example: `  weir demo
  weir demo --events 200000 --exit`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.exit && !cmd.Flags().Changed("rate") {
				o.rate = 0
			}
			if o.exit && !cmd.Flags().Changed("days") {
				o.days = 0
			}
			return o.Run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address to answer on")
	flags.StringSliceVar(&o.features, "features", nil, "files and folders of definitions (default those that come with weir)")
	flags.Int64Var(&o.events, "events", 0, "number of events; 0 for no end")
	flags.BoolVar(&o.exit, "exit", false, "end when all events are applied")
	flags.IntVar(&o.days, "days", pastDays, "days of events to begin with, besides --events; 0 (the default with --exit) for none")
	flags.Float64Var(&o.rate, "rate", 100, "events a second; 0 (the default with --exit) is as fast as they are accepted")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random events")
	return cmd
}

func (o *demoOptions) Run(ctx context.Context, out, screen io.Writer) error {
	if o.exit && o.events <= 0 {
		return errors.New("--exit needs a number of --events to wait for")
	}
	if o.events < 0 || o.rate < 0 || o.days < 0 {
		return errors.New("--events, --rate and --days must not be below 0")
	}
	registry, err := o.load()
	if err != nil {
		return err
	}
	before := debug.SetMemoryLimit(-1)
	debug.SetMemoryLimit(min(before, demoMemory))
	defer debug.SetMemoryLimit(before)
	d, err := newDemo(ctx, o, registry, screen)
	if err != nil {
		return err
	}
	defer d.close()
	return d.Run(ctx, out)
}

func (o *demoOptions) load() (*features.Registry, error) {
	if o.features == nil {
		return definition.LoadFS(config.Shipped, "features")
	}
	return definition.Load(o.features...)
}

// running is a node with everything that it needs in the same process.
type running struct {
	*demoOptions
	cfg    *config.Config
	node   *node.Node
	writer *kafka.Writer
	made   generate.Options
	past   past
	sent   atomic.Int64
	screen io.Writer
	sample sample
	closes []func()
	// trim makes the broker remove records beyond its retention.
	trim func()
	// expire lets time pass for Redis.
	expire func(time.Duration)
}

// newDemo starts the servers and wires a node to them.
func newDemo(ctx context.Context, o *demoOptions, registry *features.Registry, screen io.Writer) (d *running, err error) {
	d = &running{demoOptions: o, screen: screen}
	if d.made, err = o.eventsOf(registry); err != nil {
		return nil, err
	}
	d.past = o.newPast(registry, d.made, time.Now())
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	broker, err := embedded.Kafka(nil)
	if err != nil {
		return nil, fmt.Errorf("start the broker: %w", err)
	}
	d.closes = append(d.closes, broker.Close)
	d.trim = broker.ApplyRetention
	server, err := embedded.Redis()
	if err != nil {
		return nil, fmt.Errorf("start Redis: %w", err)
	}
	d.closes = append(d.closes, server.Close)
	d.expire = server.FastForward

	cfg := config.Default()
	cfg.Kafka.Brokers = broker.ListenAddrs()
	cfg.Redis.Addresses = []string{server.Addr()}
	cfg.API.Listen = o.listen
	cfg.Features = o.features
	cfg.Kafka.CreateTopics, cfg.Kafka.TopicPartitions, cfg.Kafka.TopicReplication = true, demoPartitions, 1
	cfg.Shards = demoShards
	d.cfg = cfg
	cfg.Log.Level = "warn"
	log, _ := node.NewLogger(screen, cfg.Log)
	connect.LogStoreClient(log)
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return nil, err
	}
	topics, err := connect.TopicNames(registry, cfg.Kafka.DeadLetterTopic)
	if err != nil {
		return nil, err
	}
	if err := createDemoTopics(ctx, client, topics); err != nil {
		return nil, err
	}
	settings := connect.TopicSettings{Create: true, DeadLetters: cfg.Kafka.DeadLetterTopic, Partitions: demoPartitions, Replication: 1}
	if err := connect.EnsureTopics(ctx, client, settings, registry); err != nil { // those of tables
		return nil, err
	}
	d.writer = generate.NewKafkaWriter(client.Transport, cfg.Kafka.Brokers)
	d.closes = append(d.closes, func() { _ = d.writer.Close() })
	d.node, err = node.New(cfg, registry, node.Roles{Processor: true, API: true}, node.Build{Release: "demo"}, log)
	return d, err
}

func createDemoTopics(ctx context.Context, client *kafka.Client, topics []string) error {
	request := &kafka.CreateTopicsRequest{}
	for _, topic := range topics {
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: topic, NumPartitions: demoPartitions, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{
				{ConfigName: "retention.bytes", ConfigValue: demoRetention}, {ConfigName: "segment.bytes", ConfigValue: demoSegment},
				{ConfigName: "retention.ms", ConfigValue: "-1"}, // the first events are a month old
			},
		})
	}
	made, err := client.CreateTopics(ctx, request)
	if err != nil {
		return fmt.Errorf("create topics: %w", err)
	}
	for topic, err := range made.Errors {
		if err != nil {
			return fmt.Errorf("create topic %s: %w", topic, err)
		}
	}
	return nil
}

func (d *running) close() {
	for i := len(d.closes) - 1; i >= 0; i-- {
		d.closes[i]()
	}
}

// Run makes events, applies and shows them until the context or, with --exit, the events end. Then
// it prints the result.
func (d *running) Run(ctx context.Context, out io.Writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.introduce()
	start := time.Now()
	var parts sync.WaitGroup
	for _, part := range []func(context.Context) error{d.node.Run, d.publish, d.watch} {
		parts.Go(func() {
			if err := part(ctx); err != nil {
				cancel(err)
			}
		})
	}
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, errAllApplied) {
		switch {
		case errors.Is(err, context.Canceled) && d.exit:
			return fmt.Errorf("ended before all events were applied: %d of %d", d.node.Stats().Applied, d.past.count+d.events)
		case errors.Is(err, context.Canceled):
			return nil
		}
		return err
	}
	return d.result(out, time.Since(start))
}

// result prints how the events were accounted for.
func (d *running) result(out io.Writer, took time.Duration) error {
	s := d.node.Stats()
	err := json.NewEncoder(out).Encode(struct {
		Events  int64   `json:"events"`
		Applied int64   `json:"applied"`
		Dead    int64   `json:"dead"`
		Seconds float64 `json:"seconds"`
	}{d.sent.Load(), s.Applied, s.Dead, took.Seconds()})
	if err == nil && s.Applied != d.sent.Load() {
		err = fmt.Errorf("%d events were made, %d applied and %d set aside as dead letters", d.sent.Load(), s.Applied, s.Dead)
	}
	return err
}
