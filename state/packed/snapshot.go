package packed

import (
	"context"
	"slices"

	"github.com/weir-stream/weir/state"
)

// Snapshot holds states in memory. It has a view of a key for each time that it was read: when the snapshot was taken, and
// when an extension needed more of its series.
type Snapshot struct {
	extend Extend
	views  map[entityKey][]*View
}

// Extend reads what reads ask for from a store, and passes on a view of each key of an entity in a group.
type Extend func(ctx context.Context, reads []state.Read, add func(group, entity string, v *View)) error

// entityKey is an entity in a group of series.
type entityKey struct{ group, entity string }

// NewSnapshot returns the snapshot of the states that reads ask for. The error is that of the store.
func NewSnapshot(ctx context.Context, extend Extend, reads []state.Read) (*Snapshot, error) {
	s := &Snapshot{extend: extend, views: map[entityKey][]*View{}}
	return s, s.Extend(ctx, reads)
}

// Extend reads what the snapshot lacks, see state.Snapshot.
func (s *Snapshot) Extend(ctx context.Context, reads []state.Read) error {
	lacking := slices.DeleteFunc(slices.Clone(reads), func(r state.Read) bool { return s.has(&r) })
	return s.extend(ctx, lacking, s.add)
}

func (s *Snapshot) add(group, entity string, v *View) {
	k := entityKey{group, entity}
	s.views[k] = append(s.views[k], v)
}

// find returns the view that a read needs, and the index of its series there; nil if the snapshot lacks it.
func (s *Snapshot) find(r *state.Read) (*View, int) {
	for _, v := range s.views[entityKey{r.Series.Group, r.Entity}] {
		if i := v.Index(r.Series); i >= 0 {
			return v, i
		}
	}
	return nil, -1
}

func (s *Snapshot) has(r *state.Read) bool {
	v, _ := s.find(r)
	return v != nil
}

// Add applies an event to an entity, see state.Snapshot.
func (s *Snapshot) Add(b *state.Batch, u *state.EntityUpdate) {
	if u.From == u.To {
		return
	}
	group := b.Mutations[u.From].Series.Group // the group of the entity, so of all its mutations
	for _, v := range s.views[entityKey{group, string(u.Entity)}] {
		for i := u.From; i < u.To; i++ {
			v.Apply(&b.Mutations[i])
		}
	}
}

// Read answers a read, see state.Snapshot.
func (s *Snapshot) Read(r *state.Read) (answer state.WindowState) {
	v, i := s.find(r)
	v.Read(i, r, &answer)
	return answer
}

// Copy copies the state that reads ask for, see state.Snapshot.
func (s *Snapshot) Copy(reads []state.Read) state.Snapshot {
	c := &Snapshot{extend: s.extend, views: map[entityKey][]*View{}}
	for i := range reads {
		if r := &reads[i]; !c.has(r) {
			v, at := s.find(r)
			c.add(r.Series.Group, r.Entity, v.Copy(at))
		}
	}
	return c
}
