package backfill

import (
	"context"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// job fills one partition.
type job struct {
	state.Partition
	log      state.LogID      // the log of its offsets
	tag      string           // of the log
	progress []state.Position // by shard
	steps    []step           // still to be filled, ascending
	next     int64            // the next offset to map
	corrupt  int              // consecutive failures to decode a batch
	earlier  *record.Earlier  // nil for a topic without dedup
	// in is true if the batch being filled has a range of the partition, at index.
	in    bool
	index int
}

// step is a range of offsets that the same slices of shards lack.
type step struct {
	from, to int64
	skip     []state.SliceSet // by shard: the slices that do not lack it
}

// stepsOf returns the ranges that shards lack, ascending.
func stepsOf(fillings []state.Filling) (steps []step) {
	var edges []int64
	for i := range fillings {
		for _, r := range fillings[i].Left() {
			edges = append(edges, r.From, r.To)
		}
	}
	slices.Sort(edges)
	edges = slices.Compact(edges)
	for i := 1; i < len(edges); i++ {
		s := step{from: edges[i-1], to: edges[i], skip: make([]state.SliceSet, len(fillings))}
		wanted := false
		for shard := range fillings {
			s.skip[shard] = state.AllSlices
			for _, r := range fillings[shard].Left() {
				if r.From <= s.from && s.to <= r.To {
					s.skip[shard] &= r.Without
				}
			}
			wanted = wanted || s.skip[shard] != state.AllSlices
		}
		if wanted {
			steps = append(steps, s)
		}
	}
	return steps
}

// start returns the offset from which a partition is filled, and since when that covers it, given its log, the first
// needed record, the moment before which records are not needed, and the present, in ms.
func start(log *fetch.Log, first fetch.Dated, moment, now int64) (from, since int64) {
	switch {
	case log.Start > 0 && log.Start == log.End:
		from, since = log.Start, now+1 // the age of the records that retention has removed is unknown
	case moment == 0 || first.Offset >= 0 && first.Offset <= log.Start:
		from, since = log.Start, max(moment, first.Timestamp)+1
	case first.Offset < 0:
		from, since = beyondAll, moment // all records are older
	default:
		from, since = first.Offset, moment
	}
	if from == 0 && log.Start == 0 {
		since = state.MinTime // the log has all records
	}
	return from, since
}

// beyondAll is an offset that no log reaches.
const beyondAll = 1 << 52

// newestRecord returns the timestamp of the newest record applied, in ms, at most the present: one record from the future
// must not leave out records of its lead, which are needed.
func newestRecord(ctx context.Context, s store.Store) (int64, error) {
	clock, err := s.Clock(ctx)
	return min(clock, time.Now().UnixMilli()), err
}

// matters returns the moment, in ms, before which records are not needed; 0 if all are.
func matters(reach features.FillReach, newest int64) int64 {
	if reach.Forever {
		return reach.After
	}
	return max(reach.After, newest-reach.Reach)
}
