// Package memory keeps state in the process's memory: what package redisstore keeps
// in Redis, with the same meaning, for replays of history that end with the
// process. It claims no partitions: every batch applied counts.
package memory

import (
	"context"
	"strings"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store"
)

var _ store.Reader = (*Store)(nil)

// Store is the state of one replay. It serves one goroutine.
type Store struct {
	entries map[key]*entry
	// swept is the number of entries that the last sweep over all has left.
	swept int
	now   int64 // the greatest of the batches applied
	// ends are by partition the offset behind the last record applied.
	ends map[state.Partition]int64

	secret packed.Secret
	buffer []byte // that states are packed into
}

// key is a series of an entity.
type key struct{ series, entity string }

type entry struct {
	series *state.Series
	packed.State
	size   int // of the state packed, in bytes, when it was looked at last
	grown  int // about how many have come since
	beside any // see Follow
}

// leastSweep is the number of entries below which none are looked for that no
// event will touch again.
const leastSweep = 1024

// New returns an empty store that hashes values without a secret: the same events have
// the same answers each time. Who knows that can make values that are taken for others.
func New() *Store { return NewKeyed(packed.Secret{}) }

// NewKeyed returns an empty store that hashes values with a secret.
func NewKeyed(secret packed.Secret) *Store {
	return &Store{entries: map[key]*entry{}, ends: map[state.Partition]int64{}, secret: secret}
}

// Apply applies a batch; there is no error.
func (s *Store) Apply(_ context.Context, b *state.Batch) error {
	s.now = max(s.now, b.Now)
	for i := range b.Ranges {
		s.ends[b.Ranges[i].Partition] = b.Ranges[i].To
	}
	for i := range b.Updates {
		t := &b.Updates[i]
		for j := t.From; j < t.To; j++ {
			op := &b.Mutations[j]
			e := s.entry(op.Series, t.Entity)
			e.Apply(op)
			if op.Series.Keep > 0 {
				e.Prune(op.Series.Horizon(s.now))
			}
			if op.Series.Bytes > 0 {
				s.fit(e, op)
			}
		}
	}
	if len(s.entries) > max(leastSweep, 2*s.swept) {
		s.sweep()
	}
	return nil
}

// fit keeps a state that has taken an operation within the bytes that its series
// allows, as a compaction does in Redis. It is looked at again when it has grown by a
// quarter of them, so that each operation pays for a few bytes.
func (s *Store) fit(e *entry, op *state.Mutation) {
	const operation = 8 // a tile, a number, lengths
	e.grown += len(op.Member) + len(op.Key) + operation
	if most := e.series.Bytes; e.grown < most/4 || e.size+e.grown <= most {
		return
	}
	s.buffer = packed.Fit(s.buffer[:0], e.series, e.State)
	e.size, e.grown = len(s.buffer), 0
}

// entry finds or makes the state of a series of an entity.
func (s *Store) entry(series *state.Series, entity []byte) *entry {
	e := s.entries[key{series.ID, string(entity)}]
	if e == nil {
		e = &entry{series: series, State: packed.NewKeyed(series, s.secret)}
		s.entries[key{series.ID, string(entity)}] = e
	}
	return e
}

// sweep drops entities whose state is too old to be asked for. One is due when
// the entries have doubled, so that it costs little for each.
func (s *Store) sweep() {
	for k, e := range s.entries {
		if e.series.Keep > 0 && e.Prune(e.series.Horizon(s.now)) {
			delete(s.entries, k)
		}
	}
	s.swept = len(s.entries)
}

// Read answers all reads, in their order. What it returns holds until the next
// Apply.
func (s *Store) Read(_ context.Context, reads []state.Read) ([]state.WindowState, error) {
	slices := make([]state.WindowState, len(reads))
	for i := range reads {
		if e := s.entries[key{reads[i].Series.ID, reads[i].Entity}]; e != nil {
			slices[i] = e.Read(&reads[i])
		}
	}
	return slices, nil
}

// Log returns the log of an entity in a series of logs, which holds until the next
// Apply, and the place of its first record; see packed.Follow. Who follows logs keeps
// something beside each, which goes with it; there is no such place beside an empty log.
func (s *Store) Log(series *state.Series, entity []byte) (log state.Log, start int64, beside *any) {
	e := s.entries[key{series.ID, string(entity)}]
	if e == nil {
		return nil, 0, nil
	}
	log, start = packed.LogOf(e.State)
	return log, start, &e.beside
}

// ReadAsIf answers all reads as Read would if a batch had just been applied, but
// for events that have arrived meanwhile; see packed.Overlay. It changes nothing.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	if pending == nil {
		return s.Read(ctx, reads)
	}
	slices := make([]state.WindowState, len(reads))
	for i := range reads {
		r := &reads[i]
		thought := map[*state.Series]packed.State{r.Series: s.copied(r.Series, r.Entity)}
		packed.Overlay(pending, r.Entity, func(series *state.Series) packed.State {
			if thought[series] == nil && series.Measure == state.RememberID {
				thought[series] = s.copied(series, r.Entity)
			}
			return thought[series]
		})
		slices[i] = thought[r.Series].Read(r)
	}
	return slices, nil
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}

// ReadReplica is ReadAsIf: there are no replicas.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	slices, err := s.ReadOverlay(ctx, reads, pending)
	return slices, state.Freshness{}, err
}

// Clock is the greatest timestamp of a record applied, in milliseconds.
func (s *Store) Clock(context.Context) (int64, error) { return s.now, nil }

// History is nil: one plan has written all there is.
func (s *Store) History(context.Context) (*state.History, error) { return nil, nil }

// Applied says whether a record was applied, under whatever plan.
func (s *Store) Applied(_ context.Context, p state.Partition, offset int64, _ []state.Read) (bool, error) {
	p.Topic, _, _ = strings.Cut(p.Topic, "@")
	return s.ends[p] > offset, nil
}

// copied is the state of a series of an entity, to be changed.
func (s *Store) copied(series *state.Series, entity string) packed.State {
	c := packed.NewKeyed(series, s.secret)
	if e := s.entries[key{series.ID, entity}]; e != nil {
		if err := c.Merge(e.Append(nil)); err != nil {
			panic(err) // it was packed the line before
		}
	}
	return c
}

// Len is the number of series of entities that are held.
func (s *Store) Len() int { return len(s.entries) }
