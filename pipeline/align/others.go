package align

import (
	"context"
	"slices"
	"sync"
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

	number  int // see Alignment.look
	listed  time.Time
	list    []state.Partition
	logs    []fetch.Log // of the list, as of when it was made
	seen    map[state.Partition]sighting
	missing time.Time // since when a topic is not known; zero if all are
}

// sighting is how far a partition was applied when that was last seen to move.
type sighting struct {
	offset int64
	since  time.Time
}

const (
	// lookInterval is how often others are looked at, at least, and for how long a list of them is used, at most.
	lookInterval = time.Second
	// lookPause is the shortest time between two looks. It is lookRest times as long as a look if that is longer: where
	// there are many partitions and shards, a look is work for the servers.
	lookPause = 2 * time.Millisecond
	lookRest  = 2
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
	present := a.now().Add(-MaxApart).UnixMilli()
	moment = min(moment, present) // whoever has reached the present has caught up
	old := o.list != nil && number == o.number && a.now().Sub(o.listed) < lookInterval
	if !old && !o.relist(ctx, number, own) {
		return
	}
	if len(o.list) == 0 {
		a.reach(number, state.MaxTime)
		return
	}
	if !known {
		return
	}
	reached, ok, atEnd := o.reached(ctx, moment)
	if atEnd && old { // there may be more now
		if !o.relist(ctx, number, own) {
			return
		}
		reached, ok, _ = o.reached(ctx, moment)
	}
	switch {
	case !ok:
		a.stay(moment)
	case reached >= present:
		a.reach(number, state.MaxTime)
	default:
		a.reach(number, reached)
	}
}

// relist lists the partitions of the topics that are not own, and their logs. It reports whether it could.
func (o *Others) relist(ctx context.Context, number int, own func(state.Partition) bool) bool {
	o.list, o.logs, o.number, o.listed = nil, nil, number, o.Alignment.now()
	list, err := o.partitions(ctx, own)
	if err == nil && len(list) > 0 {
		o.logs, err = o.Brokers.Logs(ctx, list)
	}
	if err != nil {
		return false
	}
	o.list = list
	return true
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
	now := o.Alignment.now()
	switch lacks := slices.IndexFunc(logs, func(l fetch.Log) bool { return l.Err != nil && l.Partitions == 0 }); {
	case lacks < 0:
		o.missing = time.Time{}
	case o.missing.IsZero():
		o.missing = now
		fallthrough
	case now.Sub(o.missing) < o.Alignment.patience: // it was just created, and may have partitions; if not, it was deleted
		return nil, logs[lacks].Err
	}
	for i, p := range first {
		for ; int(p.ID) < logs[i].Partitions; p.ID++ {
			if !own(p) {
				list = append(list, p)
			}
		}
	}
	return list, nil
}

// reached returns the timestamp, in ms, up to which all records of the partitions are applied, if it is not before a moment. Of a
// partition that gets no further nothing is expected, nor of one that was applied up to the end of its log when that was listed.
func (o *Others) reached(ctx context.Context, moment int64) (reached int64, ok, atEnd bool) {
	var progress [][]state.Position
	var err error
	var asking sync.WaitGroup
	asking.Go(func() { progress, err = o.Store.Progress(ctx, o.list) })
	next := o.Brokers.Since(ctx, o.list, o.logs, moment)
	asking.Wait()
	if err != nil {
		return 0, false, false
	}
	before, now := o.seen, o.Alignment.now()
	o.seen, reached, ok = map[state.Partition]sighting{}, state.MaxTime, true
	for i, p := range o.list {
		is := sighting{state.Highest(progress[i]), now}
		if was, found := before[p]; found && was.offset == is.offset {
			is.since = was.since
		}
		o.seen[p] = is
		l := &o.logs[i]
		at := max(is.offset, l.Start)
		switch {
		case l.Err == nil && next[i].Offset >= 0 && at >= next[i].Offset:
			reached = min(reached, next[i].Timestamp)
		case l.Err == nil && at >= l.Stable:
			atEnd = true
		case now.Sub(is.since) < o.Alignment.patience:
			ok = false
		}
		if l.Err != nil { // its leader may be another one now
			o.listed = time.Time{}
		}
	}
	return reached, ok, atEnd
}
