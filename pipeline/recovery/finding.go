package recovery

import (
	"fmt"
	"slices"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// finding holds what was found of a partition: its progress in the store, and its log.
type finding struct {
	partition state.Partition
	underPlan state.Partition // the name of its progress, with the version of the plan
	claim     state.Claim
	seal      state.Seal // of the store
	rivals    []state.Rival
	log       fetch.Log
	// ends says where the epochs of the progress end in the log; logs maps the tags in the progress
	// to logs, except the tag of the current log.
	ends map[int32]fetch.EpochEnd
	logs map[string]state.LogID
	now  int64 // ms
}

// verdict is the consequence of a finding: the partition continues, stops with an error, or must first be placed and
// checked again.
type verdict struct {
	placement *state.Placement
	lost      *lossError // with the placement, or as the error
	vanished  int64      // records that were applied and are no longer in the log
	err       error
}

// judge decides how the partition continues. No verdict applies an event to a shard twice: a shard is moved back only
// to where its log was truncated.
func (f *finding) judge(r Rules) verdict {
	if err := f.superseded(); err != nil {
		return verdict{err: err}
	}
	if f.log.Err != nil {
		return verdict{err: f.log.Err}
	}
	for _, end := range f.ends {
		if end.Err != nil {
			return verdict{err: end.Err}
		}
	}
	id, err := f.identity()
	if err != nil {
		return verdict{err: err}
	}
	if err := f.stale(); err != nil {
		return verdict{err: err}
	}
	for _, step := range []func(state.LogID, Rules) *verdict{f.relabelled, f.led, f.begun, f.lost} {
		if v := step(id, r); v != nil {
			return *v
		}
	}
	return verdict{err: f.waits()}
}

// superseded returns an error if a rival that began later has the partition.
func (f *finding) superseded() error {
	if f.claim.KeptBy == "" {
		return nil
	}
	e := &supersededError{Partition: f.partition}
	for _, r := range f.rivals {
		if r.Version == f.claim.KeptBy {
			e.By = r
		}
	}
	return e
}

// identity returns the log that the progress belongs to, with everything known about it. It fails if the topic is now
// another log.
func (f *finding) identity() (state.LogID, error) {
	id := f.log.ID
	tags := make([]string, 0, len(f.claim.Progress)+1)
	for _, at := range f.claim.Progress {
		if at.Exists() {
			tags = append(tags, at.Log)
		}
	}
	if len(tags) == 0 && f.claim.Topic != nil {
		tags = append(tags, f.claim.Topic.Log)
	}
	for _, tag := range tags {
		if tag == "" || tag == f.log.ID.Tag() {
			continue
		}
		was := f.logs[tag]
		if was == (state.LogID{}) || was.Contradicts(f.log.ID) {
			return id, &otherLogError{
				Partition: f.partition, Applied: max(0, state.Highest(f.claim.Progress)), Was: was, Is: f.log.ID,
				From: f.log.Start, To: f.log.End,
			}
		}
		id = id.With(was)
	}
	return id, nil
}

// stale returns an error if brokers name an older leader than that of the applied records: they do not know of the
// election, and their report of the log is outdated. Only a newer leader can tell that records have vanished.
func (f *finding) stale() error {
	applied := int32(-1)
	for _, at := range f.claim.Progress {
		if at.Exists() {
			applied = max(applied, at.Epoch)
		}
	}
	if epoch := f.log.LeaderEpoch; epoch >= 0 && epoch < applied {
		return &staleLeaderError{Partition: f.partition, Leader: f.log.Leader, Epoch: epoch, Applied: applied, Named: f.log.ID.Topic != ""}
	}
	return nil
}

// place makes the placement of shards whose position changes; nil if none does.
func (f *finding) place(id state.LogID, gap int64, change func(at state.Position) state.Position) *state.Placement {
	p := &state.Placement{
		Partition: f.underPlan, From: f.claim.Progress, To: make([]state.Position, len(f.claim.Progress)),
		Log: id, Partitions: f.log.Partitions, Gap: gap,
	}
	for shard, at := range p.From {
		p.To[shard] = at
		if f.claim.Misses(shard) == nil {
			p.To[shard] = change(at)
		}
	}
	if slices.Equal(p.From, p.To) {
		return nil
	}
	return p
}

// relabelled updates positions with the log's current name if brokers now report more of it.
func (f *finding) relabelled(id state.LogID, _ Rules) *verdict {
	tag := id.Tag()
	placement := f.place(id, 0, func(at state.Position) state.Position {
		if at.Exists() {
			at.Log = tag
		}
		return at
	})
	if placement == nil {
		return nil
	}
	return &verdict{placement: placement}
}

// led lets shards continue under the leader of the log: where that diverges from what was applied, if it does. The state
// keeps the effect of the records that vanished.
//
// The positions get the leader's epoch, which none had before. So what was read under an earlier leader, and may have
// vanished, is refused from then on: by a request that is repeated because its reply was lost, or by a process that was
// halted and has not yet heard of the leader.
func (f *finding) led(id state.LogID, r Rules) *verdict {
	var vanished int64
	placement := f.place(id, 0, func(at state.Position) state.Position {
		end, asked := f.ends[at.Epoch]
		if !at.Exists() || !asked || end.Offset < 0 {
			return at
		}
		vanished = max(vanished, at.Furthest()-end.Offset)
		at.Epoch = f.log.LeaderEpoch
		return at.Until(end.Offset)
	})
	if placement == nil {
		return nil
	}
	if vanished > 0 {
		placement.Gap = f.now
	}
	return &verdict{placement: placement, vanished: vanished}
}

// begun gives a partition that is new to the namespace its first position.
func (f *finding) begun(id state.LogID, r Rules) *verdict {
	if state.Highest(f.claim.Progress) >= 0 {
		return nil
	}
	for shard := range f.claim.Progress {
		if err := f.claim.Misses(shard); err != nil {
			return &verdict{err: fmt.Errorf("it is unknown whether it was applied before: %w", err)}
		}
	}
	if topic := f.claim.Topic; topic != nil && int(f.partition.ID) >= topic.Partitions {
		return nil // added to a known topic: all of it is applied
	}
	first := state.Position{Offset: f.log.Start, Epoch: f.log.LeaderEpoch, Log: id.Tag()}
	var gap int64
	if r.Start == Latest {
		first.Offset, gap = f.log.End, f.now
	}
	return &verdict{placement: f.place(id, gap, func(state.Position) state.Position { return first })}
}

// lost lets shards that lack records before the log's start continue there. A shard without progress lacks everything:
// it was lost, or the partition was added.
func (f *finding) lost(id state.LogID, r Rules) *verdict {
	placement := f.place(id, 0, func(at state.Position) state.Position {
		switch {
		case at.Exists() && at.Offset >= f.log.Start:
			return at
		case at.Furthest() > f.log.Start:
			return at.To(f.log.Start) // some slices are further
		}
		return state.Position{Offset: f.log.Start, Epoch: f.log.LeaderEpoch, Log: id.Tag()}
	})
	if placement == nil {
		return nil
	}
	v := &verdict{placement: placement}
	lowest := max(0, state.Lowest(f.claim.Known()))
	if lowest == f.log.Start {
		return v // nothing is missing
	}
	v.lost = &lossError{Partition: f.partition, Progress: lowest, From: f.log.Start, To: f.log.End}
	placement.Gap = f.now
	if !r.ContinueOnLoss {
		return &verdict{lost: v.lost, err: v.lost}
	}
	return v
}

// waits returns why the partition cannot be read from its position yet, or nil.
func (f *finding) waits() error {
	lowest, highest := state.Lowest(f.claim.Known()), state.Highest(f.claim.Progress)
	switch {
	case highest > f.log.End:
		verified := true
		for _, at := range f.claim.Progress {
			end, asked := f.ends[at.Epoch]
			verified = verified && (at.Furthest() <= f.log.End || asked && end.Offset >= 0)
		}
		return &beyondEndError{Partition: f.partition, Applied: highest, End: f.log.End, Verified: verified}
	case lowest > f.log.Stable:
		return &openTransactionError{Partition: f.partition, Applied: lowest, Stable: f.log.Stable, End: f.log.End}
	}
	return nil
}
