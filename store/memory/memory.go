// Package memory keeps state in the process's memory: what package store keeps
// in Redis, with the same meaning, for replays of history that end with the
// process. It knows no progress: every batch applied counts.
package memory

import (
	"context"

	"github.com/weir-stream/weir/features/kinds"
)

// Store is the state of one replay. It serves one goroutine.
type Store struct {
	entries map[key]*entry
	// swept is the number of entries that the last sweep over all has left.
	swept int
	now   int64 // the greatest of the batches applied
}

// key is a series of an entity.
type key struct{ series, entity string }

type entry struct {
	series *kinds.Series
	state
}

// state is what a series holds of an entity.
type state interface {
	// apply takes in an operation. A reason not to is of the data, such as a
	// sum that overflows; it is empty where the operation was applied.
	apply(op *kinds.Op) (refusal string)
	read(r *kinds.Read) kinds.Slice
	// prune drops what lies before the first tile kept, as far as it is cheap to
	// find, and says whether nothing is left.
	prune(first int64) (empty bool)
}

// leastSweep is the number of entries below which none are looked for that no
// event will touch again.
const leastSweep = 1024

// New returns an empty store.
func New() *Store { return &Store{entries: map[key]*entry{}} }

// Apply applies a batch. Operations that are refused because of their data are
// counted in it; there is no other error.
func (s *Store) Apply(_ context.Context, b *kinds.Batch) error {
	s.now = max(s.now, b.Now)
	for i := range b.Touched {
		t := &b.Touched[i]
		for j := t.From; j < t.To; j++ {
			op := &b.Ops[j]
			e := s.entry(op.Series, t.Entity)
			if reason := e.apply(op); reason != "" {
				if b.Refused++; b.Refused == 1 {
					b.Refusal = reason
				}
			}
			if op.Series.Keep > 0 {
				e.prune(op.Series.Horizon(s.now))
			}
		}
	}
	if len(s.entries) > max(leastSweep, 2*s.swept) {
		s.sweep()
	}
	return nil
}

// entry finds or makes the state of a series of an entity.
func (s *Store) entry(series *kinds.Series, entity []byte) *entry {
	e := s.entries[key{series.ID, string(entity)}]
	if e == nil {
		e = &entry{series: series}
		switch series.Measure.State() {
		case kinds.Tiles:
			e.state = &tiles{series: series}
		case kinds.Members:
			e.state = &members{tiles: map[string][]int64{}}
		case kinds.Sketches:
			e.state = sketches{}
		case kinds.LastSeen:
			e.state = &lastSeen{max: series.Max, times: map[string]int64{}}
		case kinds.Logs:
			e.state = &log{max: series.Max}
		}
		s.entries[key{series.ID, string(entity)}] = e
	}
	return e
}

// sweep drops entities whose state is too old to be asked for. One is due when
// the entries have doubled, so that it costs little for each.
func (s *Store) sweep() {
	for k, e := range s.entries {
		if e.series.Keep > 0 && e.prune(e.series.Horizon(s.now)) {
			delete(s.entries, k)
		}
	}
	s.swept = len(s.entries)
}

// Read answers all reads, in their order. What it returns holds until the next
// Apply.
func (s *Store) Read(_ context.Context, reads []kinds.Read) ([]kinds.Slice, error) {
	slices := make([]kinds.Slice, len(reads))
	for i := range reads {
		if e := s.entries[key{reads[i].Series.ID, reads[i].Entity}]; e != nil {
			slices[i] = e.read(&reads[i])
		}
	}
	return slices, nil
}

// Len is the number of series of entities that are held.
func (s *Store) Len() int { return len(s.entries) }
