package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/pipeline/enrich"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// If one of several servers of the store does not answer, a partition continues in the shards of the others. Lagging shards
// keep their progress, and nothing is held in memory for them: once the server of some of them answers, the partition
// is read again from their progress, and the other shards skip what they have. Batches cannot leave a hole meanwhile,
// because a lagging shard applies nothing more, see state.PartitionRange.

// lags says that some shards lag, from an offset on or from an unknown one, while the others continue: the processor
// works, but not for all entities.
func lags(shards int, from int64, why error) error {
	if from < 0 {
		return degradedError{fmt.Errorf("%d state shards could not be claimed, the others go on: %w", shards, why)}
	}
	return degradedError{fmt.Errorf("%d state shards lag from offset %d on, the others go on: %w", shards, from, why)}
}

// unknown is the offset of shards that lack an unknown range.
const unknown = int64(-1)

// errNotApplied is the reason why shards lag although their server answers again.
var errNotApplied = errors.New("their calls got no answer")

// backlog is what the lagging shards of a partition lack.
type backlog struct {
	shards []int         // that lag, until the partition is resumed
	from   int64         // the lowest offset that they lack, or unknown
	to     int64         // the end of what they lacked the last time
	readAt time.Time     // when the partition is read again from there, at the earliest
	waits  retry.Backoff // before that
	before int64         // what from was when shards began to lag the last time
	// fruitless is the wait before a partition is read again for shards that take nothing although their server answers: their
	// slot has stopped in the middle of its move, or the master has too much to do. Until the partition is back where it was,
	// the other shards get nothing new, and the longer the lag, the longer that takes. So the wait grows as the lag does.
	fruitless retry.Backoff
}

// noBacklog is that of a partition whose shards do not lag.
var noBacklog = backlog{from: unknown, before: unknown, fruitless: retry.Backoff{First: 50 * time.Millisecond, Longest: 5 * time.Minute}}

// noteLag records which shards of a partition lag after a batch.
func (w *worker) noteLag(ctx context.Context, p *assignedPartition, r *state.PartitionRange) {
	lagged, l := p.phase == lagging, &p.backlog
	l.shards = l.shards[:0]
	behind := int64(math.MaxInt64)
	for shard, at := range r.Progress {
		if r.Lags(shard) {
			if !at.Exists() { // it could not be claimed, and keeps its position
				at.Offset = l.from
			}
			behind = min(behind, at.Offset)
			l.shards = append(l.shards, shard)
		}
	}
	l.from = behind
	switch {
	case len(l.shards) == 0:
		l.from = unknown
		if p.phase == catchingUp && r.To > l.to && w.move(p, reading) {
			w.log.Info("the shards that lagged have caught up", "topic", p.Topic, "partition", p.ID)
			l.waits.Reset()
			l.fruitless.Reset()
		}
		return
	case !lagged && !w.move(p, lagging):
		return
	case !lagged:
		l.readAt = time.Now().Add(l.untilCatchUp())
		p.confirm() // the next batch may be under way when it is abandoned
	}
	l.to = r.To
	w.reportLagging(p, cmp.Or(w.unavailable(ctx, p), errNotApplied), !lagged)
}

// reportLagging says in health, and in the log if it is new, that shards of a partition lag.
func (w *worker) reportLagging(p *assignedPartition, why error, isNew bool) {
	err := lags(len(p.backlog.shards), p.backlog.from, why)
	if isNew {
		w.log.Warn("a server of the store does not answer; its shards lag, the others go on", "topic", p.Topic, "partition", p.ID, "error", err)
	}
	w.health.set(p.String(), err)
}

// untilCatchUp returns how long to wait before a partition is read again for the shards that lag now.
func (l *backlog) untilCatchUp() time.Duration {
	wait := l.waits.Next()
	if l.from > l.before {
		l.fruitless.Reset()
	} else {
		wait = max(wait, l.fruitless.Next())
	}
	l.before = l.from
	return wait
}

// lagFromTheStart records that some shards could not be claimed when the partition was taken. They lag like those whose
// master has stopped answering since; if they already lagged, what they lack is unchanged.
func (w *worker) lagFromTheStart(p *assignedPartition, why error) {
	for shard, is := range p.lease.lagging {
		if is {
			p.backlog.shards = append(p.backlog.shards, shard)
		}
	}
	p.backlog.readAt = time.Now().Add(p.backlog.waits.Next())
	w.reportLagging(p, why, true)
}

// unavailable returns why a lagging shard cannot be reached yet, or nil if all can be reached.
func (w *worker) unavailable(ctx context.Context, p *assignedPartition) error {
	for _, shard := range p.backlog.shards {
		if err := w.cfg.Store.Available(ctx, shard); err != nil {
			return err
		}
	}
	return nil
}

// reachable reports whether some lagging shard can be reached.
func (w *worker) reachable(ctx context.Context, p *assignedPartition) bool {
	return slices.ContainsFunc(p.backlog.shards, func(shard int) bool { return w.cfg.Store.Available(ctx, shard) == nil })
}

// leaveLagging leaves partitions with lagging shards and events to be enriched out of a batch, because the state lacks
// events before those of the batch.
func leaveLagging(b *enrich.Batch) {
	for i := range b.Ranges {
		r := &b.Ranges[i]
		if shards := countOf(r.Lagging, true); shards > 0 {
			b.Leave(i, lags(shards, state.Lowest(r.Progress), errNotApplied))
		}
	}
}

// catchUp reads partitions with lagging shards again, once some of these can be reached; the others may stay
// unreachable for long.
func (w *worker) catchUp(ctx context.Context) {
	var due []*assignedPartition
	for _, p := range w.partitions {
		if len(p.backlog.shards) == 0 || p.phase == leaving || time.Now().Before(p.backlog.readAt) || !w.reachable(ctx, p) {
			continue
		}
		w.log.Info("reading a partition again for the shards that lag", "topic", p.Topic, "partition", p.ID, "from", p.backlog.from, "to", p.position)
		due = append(due, p)
	}
	w.resume(ctx, due...)
}

// processed returns the offset up to which a partition is applied, or the lowest one that lagging shards lack.
func (p *assignedPartition) processed() int64 {
	if len(p.backlog.shards) > 0 && p.backlog.from >= 0 {
		return p.backlog.from
	}
	return p.applied
}
