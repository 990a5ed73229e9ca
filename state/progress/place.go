package progress

import (
	"github.com/weir-stream/weir/state"
)

// Place sets partitions to positions that applying has not reached, in this shard, unless they are no longer where they are
// expected. That is a first position, one after lost records, one before the point where a log was truncated, or one in another
// log. With the position it records its log and, if records are missing, the gap. It returns the number of partitions placed.
func (r *Record) Place(shard int, placements []state.Placement) (placed int) {
	for i := range placements {
		w := &placements[i]
		from, to := w.From[shard], w.To[shard]
		if from == to {
			continue
		}
		p := w.Partition.Itself()
		h := r.held[p]
		switch {
		case h == nil && from.Exists(), h != nil && h.At != from:
			continue
		case h == nil:
			h = &Holding{Plan: w.Partition.Plan}
			r.held[p] = h
		default:
			r.abandonFills(p, h.At, to, w.Log)
		}
		h.At = to
		r.decided[p] = true
		// A processor waits for the grace period before it applies records after a gap, see state.Claim.OwnedMs.
		if !from.Exists() || w.Gap > 0 {
			r.stamp(p)
		}
		r.recordLog(p.Topic, to.Log, w)
		if w.Gap > 0 {
			r.Gap(p.Topic, w.Gap)
		}
		placed++
	}
	return placed
}

// abandonFills gives up the unfinished fills of a partition that goes back or continues in another log. Finished ones
// forget what they applied of another log: its offsets mean other records now.
func (r *Record) abandonFills(p state.Partition, from, to state.Position, log state.LogID) {
	other := r.logs[from.Log].Contradicts(log)
	if to.Furthest() >= from.Furthest() && !other {
		return
	}
	for k, f := range r.fillings {
		switch {
		case k.partition != p || f.broken:
		case !f.finished():
			f.abandon()
		case other:
			f.spans, f.at = nil, state.NoPosition
		}
	}
}

// recordLog records the current log of a topic. The number of partitions stays as first seen.
func (r *Record) recordLog(topic, tag string, w *state.Placement) {
	seen, known := r.topics[topic]
	if !known {
		seen.Partitions = w.Partitions
	}
	seen.Log = tag
	r.topics[topic] = seen
	if _, known := r.logs[tag]; !known && tag != "" {
		r.logs[tag] = w.Log
	}
}
