package pipeline

import (
	"fmt"
	"slices"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// assignedPartition is a partition that a worker has been assigned. It is in one phase at a time:
//
//	 taken                           +------------------- active ------------------+
//	   |                             |                                             |
//	   v       found where to        |  +------------+  caught up    +---------+   |
//	+----------+  continue           |  | catchingUp | ------------> | reading |   |
//	|          | ------------------> |  +------------+               +---------+   |
//	| resuming |                     |        |        +---------+        |        |
//	|          | <------------------ |        +------> | lagging | <------+        |
//	+----------+  read again (1)     |                 +---------+                 |
//	  |  ^  |  ^                     +---------------------------------------------+
//	  |  |  |  |      due                                   |
//	  |  |  |  +------------ +---------+   cannot continue  |
//	  |  |  +--------------> | stopped | <------------------+
//	  |  |  cannot continue  +---------+
//	  |  |
//	  |  |            due
//	  |  +------------------ +---------+
//	  +--------------------> | waiting |
//	          too early (2)  +---------+
//
//	any of these -- revoked --> leaving -- nothing is under way --> released <-- the worker ends -- any
//
// (1) The store went back in time, the position is not in the log, or masters of lagging shards answer again.
// (2) See recovery.Rules.GracePeriod.
//
// All changes of the phase go through worker.move. A lease is the time for which a partition is active, and what is under
// way of it when it leaves: its batches carry the number of the lease, and count only until it ends.
type assignedPartition struct {
	state.Partition
	underPlan state.Partition // the name of its progress, with the version of the plan
	phase     phase
	lease     lease
	backlog   backlog // of the shards that lag
	pause     pause
	gone      func() // tells that it is released; nil unless it was revoked

	// confirmed is the known progress when the partition was last abandoned or began to lag; nil if there is none. If a
	// shard is later found with less, the store went back in time.
	confirmed []state.Position
	position  int64     // the next offset to map
	reached   int64     // the greatest believed timestamp of a record applied, in ms; state.MinTime if there is none
	held      *heldBack // nil if nothing waits
	applied   int64     // the offset up to which it is applied, in the shards that do not lag
	log       string    // the tag of the log that it is read from
	epoch     int32     // the leader epoch of the record before it, or a later one of the log; -1 if unknown

	// in is the batch being filled, if it has a range of the partition, at index.
	in    *workerBatch
	index int

	gauges   *lagGauges // of its lag; nil while it is unknown
	reported time.Time  // when they were last set, or the brokers asked

	earlier   *record.Earlier // of the lease; nil for a topic without dedup
	remembers bool            // it has all up to the position
	cut       int64           // what it has cut off and is counted
	unread    broken          // the batch before the position that cannot be decoded

	trouble retry.Trouble
	broken  broken
	// reason is why it cannot continue, as a label of the metrics; "" if it can. It outlasts the phase: a partition that is
	// tried again counts as stopped until it gets on.
	reason string
}

// lease is what a partition has while it is active, and until what is under way then is applied.
type lease struct {
	number    int              // what comes back with another one is ignored
	progress  []state.Position // by shard; shared with the batches of the lease
	lagging   []bool           // by shard, see state.PartitionRange; shared likewise
	unfetched bool             // the brokers do not let it be fetched; the poller tries again
}

// pause is what a partition has while it is waiting or stopped.
type pause struct {
	until time.Time             // when it is resumed
	lacks *record.MissingSchema // without which it cannot be resumed; nil for none
}

// phase is where a partition is in its life, see assignedPartition.
type phase int

const (
	resuming   phase = iota // recovery is finding where to continue
	reading                 // it is read, and applied in all shards
	catchingUp              // likewise, and the shards that lagged do not have yet what the others had
	lagging                 // it is read, and applied in the shards whose masters answer
	waiting                 // its plan has just claimed it, and must not be applied yet
	stopped                 // it cannot continue for now
	leaving                 // it was revoked; what is under way is still applied
	released                // the worker has nothing to do with it any more
)

func (s phase) String() string {
	return [...]string{"resuming", "reading", "catching up", "lagging", "waiting", "stopped", "leaving", "released"}[s]
}

// transitions are the arrows of the picture.
var transitions = [...][]phase{
	resuming:   {reading, catchingUp, lagging, waiting, stopped, leaving, released},
	reading:    {resuming, lagging, stopped, leaving, released},
	catchingUp: {resuming, reading, lagging, stopped, leaving, released},
	lagging:    {resuming, stopped, leaving, released},
	waiting:    {resuming, leaving, released},
	stopped:    {resuming, leaving, released},
	leaving:    {released},
	released:   {},
}

// strict makes a wrong transition a panic. Tests set it.
var strict bool

// move changes the phase of a partition. Its lease ends unless it stays or becomes active, or leaves. A transition that
// the picture does not have is refused, with false: the partition starts over from the progress in the store, which is
// right whatever went wrong before, and nothing that is under way for it counts.
func (w *worker) move(p *assignedPartition, to phase) bool {
	if slices.Contains(transitions[p.phase], to) {
		p.phase, p.pause = to, pause{}
		if to != leaving && !p.active() {
			w.abandon(p)
		}
		return true
	}

	err := fmt.Errorf("a partition that is %v cannot become %v: this is an error in the program", p.phase, to)
	if strict {
		panic(err)
	}
	w.log.Error("the phase of a partition was about to change wrongly", "topic", p.Topic, "partition", p.ID, "error", err)
	if p.phase != released { // else another may have its name now
		w.abandon(p)
	}
	if p.phase != released && p.phase != leaving {
		p.phase = stopped
		w.fail(p, err)
	}
	return false
}

// active reports whether the partition is read and applied.
func (p *assignedPartition) active() bool {
	return p.phase == reading || p.phase == catchingUp || p.phase == lagging
}

// wentBack reports whether a shard has less progress in the same log than was confirmed, or none. The confirmed progress
// of the shards that were found is dropped. For shards whose master did not answer it is kept until they are found. There
// may be fewer shards than before: a failover may lose that they became more.
func (p *assignedPartition) wentBack(found *state.Claim) (back bool) {
	p.confirmed = p.confirmed[:min(len(p.confirmed), len(found.Progress))]
	for shard, at := range p.confirmed {
		if found.Misses(shard) == nil {
			now := found.Progress[shard]
			back = back || at.Exists() && (!now.Exists() || now.Log == at.Log && now.Offset < at.Offset)
			p.confirmed[shard] = state.NoPosition
		}
	}
	return back
}

// confirm records the known progress of a partition that is abandoned or begins to lag. For shards that could not be
// claimed, the earlier record is kept.
func (p *assignedPartition) confirm() {
	earlier := p.confirmed
	p.confirmed = slices.Clone(p.lease.progress)
	for shard, at := range earlier[:min(len(earlier), len(p.confirmed))] {
		if !p.confirmed[shard].Exists() {
			p.confirmed[shard] = at
		}
	}
}
