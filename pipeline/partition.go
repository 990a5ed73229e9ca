package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// partition is a partition that a worker has been assigned.
type partition struct {
	kinds.Partition
	under    kinds.Partition // the name of its progress, with the version of the plan
	progress []int64         // by shard, the next offset to apply; shared with the batches under way
	lagging  []bool          // by shard, see kinds.Source; shared likewise
	position int64           // the next offset to map

	// in is the batch being filled that has a share of the partition, at index.
	in    *batch
	index int

	// A partition that cannot go on is read again at retryAt; zero if it goes on.
	retryAt time.Time
	trouble trouble
	broken  broken

	// Where the master of some shards does not answer, the partition goes on in the
	// others. behind is the lowest offset that those lack, and lags are they; the
	// partition is read again from there, at catchUpAt at the earliest.
	lags      []int
	behind    int64
	catchUpAt time.Time
	caughtUp  int64 // the offset behind what the shards that lag lacked when they did last
	waits     backoff
}

// has says whether the progress is the partition's present one, and not that of
// before it was resumed.
func (p *partition) has(progress []int64) bool {
	return len(p.progress) > 0 && &p.progress[0] == &progress[0]
}

func (p *partition) String() string { return partitionName(p.Partition) }

func partitionName(p kinds.Partition) string { return fmt.Sprintf("%s/%d", p.Topic, p.ID) }

// LossError says that records were not applied and are no longer in the log.
type LossError struct {
	Partition kinds.Partition
	// Progress is the next offset to apply; the log holds From to To.
	Progress, From, To int64
}

func (e *LossError) Error() string {
	where := fmt.Sprintf("%s/%d", e.Partition.Topic, e.Partition.ID)
	if e.Progress > e.To {
		return fmt.Sprintf("%s: applied up to offset %d, but the log ends at %d: the topic was deleted and made anew, "+
			"or lost records; set kafka.on_data_loss to continue to read it from its start", where, e.Progress, e.To)
	}
	return fmt.Sprintf("%s: offsets %d to %d (%d records) were not applied and are no longer in the log; "+
		"set kafka.on_data_loss to continue to go on without them", where, e.Progress, e.From-1, e.From-e.Progress)
}

// recovery finds where a partition must be read from.
type recovery struct {
	cfg     *Config
	metrics *metrics
	log     *slog.Logger
	writer  Writer
	plan    *kinds.Plan
	offsets func(ctx context.Context, topic string, partitions ...int32) (map[int32]fetch.Range, error)
}

// resume claims the partition and sets its position to the lowest progress of
// all shards. Where it must not be applied yet, it says in how long it may; it
// is then to be resumed anew. Its error is a *LossError, or says that the store
// or Kafka could not be reached.
func (r *recovery) resume(ctx context.Context, p *partition) (early time.Duration, err error) {
	if err := r.cfg.Store.Create(ctx); err != nil {
		return 0, err
	}
	if err := r.cfg.Store.Register(ctx, r.plan, time.Now()); err != nil {
		return 0, err
	}
	progress, had, err := r.cfg.Store.Claim(ctx, p.Partition, r.plan.Version)
	if err != nil {
		return 0, err
	}
	ranges, err := r.offsets(ctx, p.Topic, p.ID)
	if err != nil {
		return 0, err
	}
	held := ranges[p.ID]
	if slices.Max(progress) > held.End {
		return r.madeAnew(ctx, p, progress, held)
	}
	if slices.Min(progress) < 0 {
		return r.begin(ctx, p, progress, held)
	}
	if lowest := slices.Min(progress); lowest < held.Start {
		return r.skipLost(ctx, p, progress, held)
	}
	p.progress, p.position = progress, slices.Min(progress)
	p.lagging, p.lags = make([]bool, len(progress)), nil
	return r.early(ctx, had)
}

// early is how long it takes yet until the plan may be applied to a partition
// that it has had for a time. Those who answer questions know for a moment an
// old history, by which all goes to features that this plan does not keep.
func (r *recovery) early(ctx context.Context, had time.Duration) (time.Duration, error) {
	if had >= r.cfg.Settle {
		return 0, nil
	}
	history, err := r.cfg.Store.History(ctx)
	if err != nil {
		return 0, err
	}
	for _, plan := range history.Plans {
		if !r.plan.Covers(plan) {
			return r.cfg.Settle - had, nil
		}
	}
	return 0, nil
}

// begin gives shards without progress a first one. Where no shard has any the
// partition is new to the namespace; where some have, the others lost theirs
// and everything in the log is new to them.
func (r *recovery) begin(ctx context.Context, p *partition, progress []int64, held fetch.Range) (time.Duration, error) {
	offset := held.Start
	if r.cfg.Start == Latest && slices.Max(progress) < 0 {
		offset = held.End
		if err := r.gap(ctx, p); err != nil {
			return 0, err
		}
	}
	if slices.Max(progress) >= 0 && held.Start > 0 {
		// The log does not begin with the first record ever: what the shards
		// held of those before cannot be had back.
		if err := r.lose(ctx, p, &LossError{Partition: p.Partition, Progress: 0, From: held.Start, To: held.End}); err != nil {
			return 0, err
		}
	}
	if err := r.cfg.Store.Start(ctx, p.under, offset); err != nil {
		return 0, err
	}
	return r.resume(ctx, p)
}

// skipLost goes on at the start of the log although not all before it was applied.
func (r *recovery) skipLost(ctx context.Context, p *partition, progress []int64, held fetch.Range) (time.Duration, error) {
	err := r.lose(ctx, p, &LossError{Partition: p.Partition, Progress: slices.Min(progress), From: held.Start, To: held.End})
	if err != nil {
		return 0, err
	}
	skip := kinds.Batch{
		Sources:    []kinds.Source{{Partition: p.under, To: held.Start, Progress: progress}},
		EveryShard: true,
	}
	if err := r.writer.Apply(ctx, &skip); err != nil {
		return 0, err
	}
	return r.resume(ctx, p)
}

// madeAnew goes on at the start of a log that ends before what was applied.
func (r *recovery) madeAnew(ctx context.Context, p *partition, progress []int64, held fetch.Range) (time.Duration, error) {
	err := r.lose(ctx, p, &LossError{Partition: p.Partition, Progress: slices.Max(progress), From: held.Start, To: held.End})
	if err != nil {
		return 0, err
	}
	if err := r.cfg.Store.Forget(ctx, p.Partition); err != nil {
		return 0, err
	}
	if err := r.cfg.Store.Start(ctx, p.under, held.Start); err != nil {
		return 0, err
	}
	return r.resume(ctx, p)
}

// gap notes that records are passed over which were written until now.
func (r *recovery) gap(ctx context.Context, p *partition) error {
	return r.cfg.Store.Gap(ctx, p.Partition, time.Now().UnixMilli())
}

// lose counts what was lost and returns it as an error, unless losses are
// borne; then the history tells of them.
func (r *recovery) lose(ctx context.Context, p *partition, loss *LossError) error {
	if lost := loss.From - loss.Progress; lost > 0 {
		r.metrics.lost.WithLabelValues(loss.Partition.Topic).Add(float64(lost))
	}
	if !r.cfg.ContinueOnLoss {
		return loss
	}
	r.log.Error("records are lost, going on without them", "loss", loss)
	return r.gap(ctx, p)
}
