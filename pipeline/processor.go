package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// Processor is one member of the consumer group.
type Processor struct {
	cfg     Config
	metrics *metrics
	log     *slog.Logger
	health  *health
	stats   stats
	dead    *kafka.Writer
}

// New returns a processor; Run makes it work.
func New(cfg Config) *Processor {
	cfg = cfg.withDefaults()
	p := &Processor{
		cfg: cfg, metrics: newMetrics(cfg.Metrics), log: cfg.Logger, health: newHealth(),
		dead: newDeadLetterWriter(&cfg),
	}
	p.health.set("group", errors.New("not a member yet"))
	return p
}

// Ready is nil while partitions are assigned and carried; else it says what is
// in the way.
func (p *Processor) Ready(context.Context) error { return p.health.err() }

// Stats counts records since the processor was made. A record that was read
// again after a rewind counts again.
type Stats struct {
	Applied   int64 // to the state; late ones are among them
	Dead      int64 // written to the dead-letter topic
	Unmatched int64 // of no stream
	Assigned  int64 // partitions now
}

type stats struct{ applied, dead, unmatched, assigned atomic.Int64 }

func (s *stats) add(b *batch) {
	for o, n := range b.outcomes {
		switch o.what {
		case dead:
			s.dead.Add(int64(n))
		case unmatched:
			s.unmatched.Add(int64(n))
		default:
			s.applied.Add(int64(n))
		}
	}
}

// Stats is how far the processor is.
func (p *Processor) Stats() Stats {
	s := &p.stats
	return Stats{s.applied.Load(), s.dead.Load(), s.unmatched.Load(), s.assigned.Load()}
}

// Run carries events until the context ends; then it flushes, commits and
// leaves the group. Its error is a *LossError, or says what is wrong with the
// configuration; passing troubles of Kafka and Redis are waited out.
func (p *Processor) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer p.dead.Close()
	if !p.waitForTopics(ctx) {
		return failure(ctx)
	}
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID: p.cfg.Group, Brokers: p.cfg.Brokers, Dialer: p.cfg.Dialer,
		Topics: p.cfg.Registry.Topics(),
		// Round robin spreads several topics of few partitions evenly.
		GroupBalancers:        []kafka.GroupBalancer{kafka.RoundRobinGroupBalancer{}, kafka.RangeGroupBalancer{}},
		WatchPartitionChanges: true,
		SessionTimeout:        p.cfg.SessionTimeout, RebalanceTimeout: p.cfg.RebalanceTimeout,
		HeartbeatInterval: p.cfg.HeartbeatInterval, JoinGroupBackoff: time.Second,
	})
	if err != nil {
		return fmt.Errorf("join group %q: %w", p.cfg.Group, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = group.Close() }) // ends the generation under way
	defer stop()
	joining := trouble{log: p.log, what: "joining the consumer group"}
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if ctx.Err() == nil {
				p.health.set("group", err)
				wait(ctx, joining.failed(err))
			}
			continue
		}
		joining.over()
		generation.Start(func(ctx context.Context) {
			if err := p.generation(ctx, generation); err != nil {
				cancel(err)
			}
		})
	}
	// Close waits for the generation's flush and leaves the group.
	_ = group.Close()
	return failure(ctx)
}

// failure is why the context ended, if it was more than a request to stop.
func failure(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// waitForTopics waits until all topics are there: the group would be given no
// partitions at all while one is missing.
func (p *Processor) waitForTopics(ctx context.Context) bool {
	client := &kafka.Client{Addr: kafka.TCP(p.cfg.Brokers...), Transport: p.cfg.Transport, Timeout: 10 * time.Second}
	missing := trouble{log: p.log, what: "finding the topics"}
	for {
		err := findTopics(ctx, client, p.cfg.Registry.Topics())
		if err == nil {
			missing.over()
			return true
		}
		p.health.set("group", err)
		if !wait(ctx, missing.failed(err)) {
			return false
		}
	}
}

func findTopics(ctx context.Context, client *kafka.Client, topics []string) error {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return err
	}
	for _, t := range found.Topics {
		if t.Error != nil {
			return fmt.Errorf("topic %q: %w", t.Name, t.Error)
		}
	}
	return nil
}

// generation carries the partitions of one generation of the group until its
// context ends, and gives them up flushed and committed.
func (p *Processor) generation(ctx context.Context, g *kafka.Generation) error {
	assigned := assignments(g)
	p.log.Info("partitions assigned", "generation", g.ID, "partitions", len(assigned))
	p.metrics.partitions.Set(float64(len(assigned)))
	p.stats.assigned.Store(int64(len(assigned)))
	for _, id := range assigned {
		p.health.set(partitionName(id), errNotResumed)
		defer p.health.clear(partitionName(id))
	}
	p.health.clear("group")
	defer p.metrics.partitions.Set(0)
	defer p.metrics.lag.Reset()

	// What is under way when the generation ends has a time of its own.
	patient, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.cfg.ShutdownTimeout, giveUp) })()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	commits := newCommitter(g, p.log)
	defer commits.close()
	var workers sync.WaitGroup
	for i := range min(p.cfg.Workers, len(assigned)) {
		var share []kinds.Partition
		for n := i; n < len(assigned); n += p.cfg.Workers {
			share = append(share, assigned[n])
		}
		workers.Go(func() {
			if err := p.work(ctx, patient, fmt.Sprintf("worker %d", i), share, commits.commit); err != nil {
				cancel(err)
			}
		})
	}
	<-ctx.Done()
	workers.Wait()
	var loss *LossError
	if err := context.Cause(ctx); errors.As(err, &loss) || !errors.Is(err, kafka.ErrGenerationEnded) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// errNotResumed is what a partition's health is until it is read.
var errNotResumed = errors.New("its progress was not read yet")

// assignments are the generation's partitions, topic by topic, so that workers
// who take them in turn share every topic: the events of one may cost more.
func assignments(g *kafka.Generation) []kinds.Partition {
	var all []kinds.Partition
	for topic, partitions := range g.Assignments {
		for _, a := range partitions {
			all = append(all, kinds.Partition{Topic: topic, ID: int32(a.ID)})
		}
	}
	slices.SortFunc(all, func(a, b kinds.Partition) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// work makes a worker for some partitions and runs it.
func (p *Processor) work(ctx, patient context.Context, name string, share []kinds.Partition,
	commit func(map[kinds.Partition]int64)) error {
	poller := fetch.NewPoller(fetch.PollerConfig{
		Transport: p.cfg.Transport, Bootstrap: kafka.TCP(p.cfg.Brokers...), Isolation: p.cfg.Isolation,
		MinBytes: p.cfg.FetchMinBytes, MaxBytes: p.cfg.FetchMaxBytes,
		PartitionMaxBytes: p.cfg.FetchPartitionMaxBytes, MaxWait: p.cfg.FetchMaxWait, Logger: p.log,
	})
	defer poller.Close()
	a := &applier{
		todo: make(chan *batch), done: make(chan *batch, 1), writer: p.cfg.NewWriter(), dead: p.dead,
		metrics: p.metrics, stats: &p.stats, health: p.health, name: name,
		trouble: trouble{log: p.log, what: "applying to Redis"},
	}
	var applying sync.WaitGroup
	applying.Go(func() { a.run(patient) })
	defer applying.Wait()
	defer close(a.todo)
	w := &worker{
		cfg: &p.cfg, metrics: p.metrics, log: p.log, poller: poller, health: p.health,
		mapper: p.cfg.Registry.NewMapper(), applier: a, commit: commit,
		recovery: recovery{
			cfg: &p.cfg, metrics: p.metrics, log: p.log, writer: p.cfg.NewWriter(), offsets: poller.Offsets,
		},
		partitions: make(map[kinds.Partition]*partition), current: newBatch(), spare: newBatch(),
	}
	w.mapper.MaxRecordBytes = p.cfg.MaxRecordBytes
	for _, id := range share {
		w.partitions[id] = &partition{
			Partition: id,
			trouble:   trouble{log: p.log.With("topic", id.Topic, "partition", id.ID), what: "carrying the partition"},
		}
	}
	defer p.health.clear(name)
	return w.run(ctx)
}
