package pipeline

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// partition is a partition that a worker has been assigned.
type partition struct {
	state.Partition
	underPlan state.Partition  // the name of its progress, with the version of the plan
	progress  []state.Position // by shard, nil while it is not carried; shared with the batches under way
	lagging   []bool           // by shard, see state.PartitionRange; shared likewise
	// confirmed is the progress that was known when the partition was last abandoned; nil
	// for none. Where a shard has less then, the store has gone back in time.
	confirmed []state.Position
	position  int64 // the next offset to map
	epoch     int32 // the leader epoch of the record before it, or a later one of the log; -1 if unknown

	// in is the batch being filled that has a share of the partition, at index.
	in    *batch
	index int

	resuming bool     // recovery looks where to go on
	attempt  int      // of recovery
	leaving  *leaving // nil unless the group has taken it away

	// A partition that cannot go on is read again at retryAt; zero if it goes on.
	retryAt time.Time
	trouble retry.Trouble
	broken  broken
	lacks   *record.MissingSchema // what it waits for; nil for nothing
	// stopped is why it cannot go on, as a label of the metrics; "" while it does.
	stopped string

	// Where the master of some shards does not answer, the partition goes on in the
	// others. lags are those, and behind is the lowest offset that they lack, or unknown; the
	// partition is read again from there, at catchUpAt at the earliest.
	lags      []int
	behind    int64
	catchUpAt time.Time
	caughtUp  int64 // the offset behind what the shards that lag lacked when they did last
	waits     retry.Backoff
}

// has says whether the progress is the partition's present one, and not that of
// before it was resumed.
func (p *partition) has(progress []state.Position) bool {
	return len(p.progress) > 0 && &p.progress[0] == &progress[0]
}

// carried says whether the partition is read and applied.
func (p *partition) carried() bool { return p.progress != nil }

// wentBack says whether a shard is found with less progress in the same log than it had
// when the partition was abandoned, or with none.
func (p *partition) wentBack(found *state.Claim) bool {
	for shard, at := range p.confirmed {
		now := found.Progress[shard]
		if found.Misses(shard) == nil && at.Exists() && (!now.Exists() || now.Log == at.Log && now.Offset < at.Offset) {
			return true
		}
	}
	return false
}

// confirm notes the progress that is known of a partition that is abandoned. Of a shard
// that could not be claimed, what was known of it before stands.
func (p *partition) confirm() {
	earlier := p.confirmed
	p.confirmed = slices.Clone(p.progress)
	for shard, at := range earlier {
		if !p.confirmed[shard].Exists() {
			p.confirmed[shard] = at
		}
	}
}

// compared drops what was known of the shards that were found. Of those whose master did
// not answer it stands until they are.
func (p *partition) compared(found *state.Claim) {
	for shard := range p.confirmed {
		if found.Misses(shard) == nil {
			p.confirmed[shard] = state.NoPosition
		}
	}
}

func (p *partition) String() string { return recovery.Name(p.Partition) }
