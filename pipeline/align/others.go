package align

import (
	"context"
	"time"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Others looks how far the partitions of other processes are.
type Others struct {
	Alignment *Alignment
	Topics    []string
	Brokers   interface {
		Logs(ctx context.Context, partitions []state.Partition) ([]fetch.Log, error)
		Since(ctx context.Context, partitions []state.Partition, logs []fetch.Log, moment int64) []fetch.Dated
	}
	Store interface {
		Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	}

	seen map[state.Partition]sighting
}

// sighting is how far a partition was applied when that was last seen to move.
type sighting struct {
	offset int64
	since  time.Time
}

const (
	// lookInterval is how often others are looked at, at least.
	lookInterval = time.Second
	// lookPause is the shortest time between two looks. It is lookRest times as long as a look if that is longer: where there are many
	// partitions and shards, a look is work for the servers.
	lookPause = 10 * time.Millisecond
	lookRest  = 4
)

// Follow looks while the own partitions have not caught up, until the context ends. What cannot be read now is read at the next look.
func (o *Others) Follow(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-o.Alignment.ahead:
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		began := time.Now()
		if !o.Alignment.CaughtUp() {
			o.Look(ctx)
		}
		timer.Reset(max(lookPause, lookRest*time.Since(began)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			return
		}
		timer.Reset(lookInterval)
	}
}

// Look looks once.
func (o *Others) Look(ctx context.Context) {
	a := o.Alignment
	number, moment, known, own := a.look()
	others, err := o.partitions(ctx, own)
	switch {
	case err != nil:
	case len(others) == 0:
		a.reach(number, state.MaxTime)
	case !known:
	default:
		if reached, ok := o.reached(ctx, others, moment); ok {
			a.reach(number, reached)
		} else {
			a.stay(moment)
		}
	}
}

// partitions lists the partitions of the topics that are not own.
func (o *Others) partitions(ctx context.Context, own func(state.Partition) bool) (list []state.Partition, err error) {
	first := make([]state.Partition, len(o.Topics))
	for i, topic := range o.Topics {
		first[i] = state.Partition{Topic: topic}
	}
	logs, err := o.Brokers.Logs(ctx, first)
	if err != nil {
		return nil, err
	}
	for i, p := range first {
		if logs[i].Err != nil && logs[i].Partitions == 0 {
			return nil, logs[i].Err // the topic was just created: it may have partitions
		}
		for ; int(p.ID) < logs[i].Partitions; p.ID++ {
			if !own(p) {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

// reached returns the timestamp, in ms, up to which all records of partitions are applied, if it is not before a moment. Of a
// partition that gets no further nothing is expected.
func (o *Others) reached(ctx context.Context, partitions []state.Partition, moment int64) (reached int64, ok bool) {
	logs, err := o.Brokers.Logs(ctx, partitions)
	if err != nil {
		return 0, false
	}
	next := o.Brokers.Since(ctx, partitions, logs, moment)
	progress, err := o.Store.Progress(ctx, partitions)
	if err != nil {
		return 0, false
	}
	before, now := o.seen, o.Alignment.now()
	o.seen, reached, ok = map[state.Partition]sighting{}, state.MaxTime, true
	for i, p := range partitions {
		is := sighting{state.Highest(progress[i]), now}
		if was, found := before[p]; found && was.offset == is.offset {
			is.since = was.since
		}
		o.seen[p] = is
		at := max(is.offset, logs[i].Start)
		switch {
		case logs[i].Err == nil && next[i].Offset < 0 && at >= logs[i].Stable: // it has no record that is as new
		case logs[i].Err == nil && next[i].Offset >= 0 && at >= next[i].Offset:
			reached = min(reached, next[i].Timestamp)
		case now.Sub(is.since) < o.Alignment.patience:
			ok = false
		}
	}
	return reached, ok
}
