package pipeline

import (
	"slices"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// assignedPartition is a partition that a worker has been assigned.
type assignedPartition struct {
	state.Partition
	underPlan state.Partition // the name of its progress, with the version of the plan
	// lease is the number of the current lease: the time from one resumption to the next, in which the batches of the
	// partition have the same progress. What comes back under an earlier one is ignored.
	lease    int
	progress []state.Position // by shard, nil while it is not processed; shared with the batches of the lease
	lagging  []bool           // by shard, see state.PartitionRange; shared likewise
	// confirmed is the known progress when the partition was last abandoned or began to lag; nil if there is none. If a
	// shard is later found with less, the store went back in time.
	confirmed []state.Position
	position  int64  // the next offset to map
	applied   int64  // the offset up to which it is applied, in the shards that do not lag
	log       string // the tag of the log that it is read from
	epoch     int32  // the leader epoch of the record before it, or a later one of the log; -1 if unknown

	// in is the batch being filled, if it has a range of the partition, at index.
	in    *workerBatch
	index int

	gauges   *lagGauges // of its lag; nil while it is unknown
	reported time.Time  // when they were last set, or the brokers asked

	leaving *leaving // nil unless the group has revoked it

	// A partition that cannot continue is read again at retryAt; zero if it continues.
	retryAt time.Time
	trouble retry.Trouble
	broken  broken
	lacks   *record.MissingSchema // the schema it waits for; nil for none
	// stopped is why it cannot continue, as a label of the metrics; "" if it can.
	stopped   string
	unfetched bool // it is stopped because the brokers do not let it be fetched; the poller tries again

	// If the master of some shards does not answer, the partition continues in the others. behind is the lowest offset
	// that the lagging shards lack, or unknown. The partition is read again from there, at catchUpAt at the earliest.
	laggingShards []int
	behind        int64
	catchUpAt     time.Time
	caughtUp      int64 // the end of what lagging shards lacked the last time
	waits         retry.Backoff
	lacked        int64         // what behind was when shards began to lag the last time
	inVain        retry.Backoff // the wait after the partition was read again and lagging shards took nothing
}

// active reports whether the partition is read and applied.
func (p *assignedPartition) active() bool { return p.progress != nil }

// wentBack reports whether a shard has less progress in the same log than was confirmed, or none.
func (p *assignedPartition) wentBack(found *state.Claim) bool {
	for shard, at := range p.confirmed {
		now := found.Progress[shard]
		if found.Misses(shard) == nil && at.Exists() && (!now.Exists() || now.Log == at.Log && now.Offset < at.Offset) {
			return true
		}
	}
	return false
}

// confirm records the known progress of a partition that is abandoned or begins to lag. For shards that could not be
// claimed, the earlier record is kept.
func (p *assignedPartition) confirm() {
	earlier := p.confirmed
	p.confirmed = slices.Clone(p.progress)
	for shard, at := range earlier {
		if !p.confirmed[shard].Exists() {
			p.confirmed[shard] = at
		}
	}
}

// compared drops the confirmed progress of the shards that were found. For shards whose master did not answer it is
// kept until they are found.
func (p *assignedPartition) compared(found *state.Claim) {
	for shard := range p.confirmed {
		if found.Misses(shard) == nil {
			p.confirmed[shard] = state.NoPosition
		}
	}
}
