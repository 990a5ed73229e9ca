package plain

import (
	"context"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// Snapshot copies the states of the reads.
func (s *Store) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	f := &snapshot{s, map[key]*packed.View{}}
	return f, f.Extend(ctx, reads)
}

// snapshot has a view of each series of an entity.
type snapshot struct {
	store *Store
	views map[key]*packed.View
}

func (f *snapshot) Extend(_ context.Context, reads []state.Read) error {
	f.store.mu.Lock()
	defer f.store.mu.Unlock()
	for _, r := range reads {
		if k := keyOf(r.Series, r.Entity); f.views[k] == nil {
			f.views[k] = f.store.view(r.Entity, r.Series)
		}
	}
	return nil
}

func (f *snapshot) Add(b *state.Batch, u *state.EntityUpdate) {
	for i := u.From; i < u.To; i++ {
		if v := f.views[keyOf(b.Mutations[i].Series, string(u.Entity))]; v != nil {
			v.Apply(&b.Mutations[i])
		}
	}
}

func (f *snapshot) Read(r *state.Read) (answer state.WindowState) {
	f.views[keyOf(r.Series, r.Entity)].Read(0, r, &answer)
	return answer
}

func (f *snapshot) Copy(reads []state.Read) state.Snapshot {
	c := &snapshot{f.store, map[key]*packed.View{}}
	for _, r := range reads {
		k := keyOf(r.Series, r.Entity)
		c.views[k] = f.views[k].Copy(0)
	}
	return c
}
