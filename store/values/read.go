package values

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// Read answers all reads.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, nil)
}

// lookup is the reads of one value: with pending events, or as it is stored.
type lookup struct {
	key    Key
	stored bool
	reads  []int
}

// lookups groups reads by what they read.
func (s *Store) lookups(reads []state.Read) (list []lookup) {
	type named struct {
		group, entity string
		stored        bool
	}
	index := map[named]int{}
	for i := range reads {
		r := &reads[i]
		n := named{r.Series.Group, r.Entity, r.Stored}
		at, known := index[n]
		if !known {
			at = len(list)
			index[n] = at
			list = append(list, lookup{key: s.keyOf(n.group, n.entity), stored: r.Stored})
		}
		list[at].reads = append(list[at].reads, i)
	}
	return list
}

// ReadOverlay answers all reads as if a batch had just been applied.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	secret, err := s.secretFor(ctx)
	if err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	list := s.lookups(reads)
	answers := make([]state.WindowState, len(reads))
	missing := 0
	for n, held := range s.read(ctx, list) {
		l := &list[n]
		if errors.Is(held.Err, state.ErrUnavailable) {
			missing++
		} else if held.Err != nil {
			return nil, fmt.Errorf("read features: %w", held.Err)
		}
		series := make([]*state.Series, len(l.reads))
		for i, r := range l.reads {
			series[i] = reads[r].Series
		}
		v := s.view(secret, l.key, held, series)
		if pending != nil && !l.stored {
			v.Overlay(pending, l.key.Entity, s.view(secret, l.key, held, packed.IDSeries(nil, pending, l.key.Group, l.key.Entity)))
		}
		for _, r := range l.reads {
			v.Read(v.Index(reads[r].Series), &reads[r], &answers[r])
		}
	}
	if missing > 0 && missing == len(list) {
		return nil, fmt.Errorf("read features: %w", s.engine.Down())
	}
	return answers, nil
}

// read reads what lookups need.
func (s *Store) read(ctx context.Context, list []lookup) []Value {
	if len(list) == 0 {
		return nil
	}
	keys := make([]Key, len(list))
	for i := range list {
		keys[i] = list[i].key
	}
	return s.engine.Read(ctx, keys)
}

// ReadReplica is ReadOverlay: an engine may read copies only where they have all that was written.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	answers, err := s.ReadOverlay(ctx, reads, pending)
	return answers, state.Freshness{}, err
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}

// Snapshot reads the states of the reads into memory.
func (s *Store) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	taken := &snapshot{s, secret, map[Key][]*packed.View{}}
	return taken, taken.Extend(ctx, reads)
}

// snapshot holds states in memory. It has a view of a value for each time that it was read: when the snapshot was taken, and when
// an extension needed more of its series.
type snapshot struct {
	store  *Store
	secret state.Secret
	views  map[Key][]*packed.View
}

func (f *snapshot) Extend(ctx context.Context, reads []state.Read) error {
	reads = slices.DeleteFunc(slices.Clone(reads), func(r state.Read) bool {
		v, _ := f.find(&r)
		return v != nil
	})
	list := f.store.lookups(reads)
	for n, held := range f.store.read(ctx, list) {
		if held.Err != nil {
			return fmt.Errorf("read features: %w", held.Err)
		}
		var series []*state.Series
		for _, r := range list[n].reads {
			series = append(series, reads[r].Series)
		}
		k := list[n].key
		f.views[k] = append(f.views[k], f.store.view(f.secret, k, held, series))
	}
	return nil
}

// find returns the view that a read needs, and the index of its series there; nil if the snapshot lacks it.
func (f *snapshot) find(r *state.Read) (*packed.View, int) {
	for _, v := range f.views[f.store.keyOf(r.Series.Group, r.Entity)] {
		if i := v.Index(r.Series); i >= 0 {
			return v, i
		}
	}
	return nil, -1
}

func (f *snapshot) Add(b *state.Batch, u *state.EntityUpdate) {
	for i := u.From; i < u.To; i++ {
		for _, v := range f.views[f.store.keyOf(b.Mutations[i].Series.Group, string(u.Entity))] {
			v.Apply(&b.Mutations[i])
		}
	}
}

func (f *snapshot) Read(r *state.Read) (answer state.WindowState) {
	v, i := f.find(r)
	v.Read(i, r, &answer)
	return answer
}

func (f *snapshot) Copy(reads []state.Read) state.Snapshot {
	c := &snapshot{f.store, f.secret, map[Key][]*packed.View{}}
	for i := range reads {
		if has, _ := c.find(&reads[i]); has == nil {
			v, at := f.find(&reads[i])
			k := f.store.keyOf(reads[i].Series.Group, reads[i].Entity)
			c.views[k] = append(c.views[k], v.Copy(at))
		}
	}
	return c
}
