package redisstore

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Follow reads what reads look at, whole, with one pipeline, to be followed in
// memory. It writes nothing.
func (s *Store) Follow(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	secret, err := s.keyed(ctx)
	if err != nil {
		return nil, err
	}
	f := s.newFollowing(secret)
	if err := f.Extend(ctx, reads); err != nil {
		return nil, err
	}
	return f, nil
}

// following is the state of series, by entity and by series.
type following struct {
	store  *Store
	secret packed.Secret
	states map[string]map[string]packed.State
}

func (s *Store) newFollowing(secret packed.Secret) *following {
	return &following{store: s, secret: secret, states: make(map[string]map[string]packed.State)}
}

func (f *following) Extend(ctx context.Context, reads []state.Read) error {
	reads = slices.DeleteFunc(slices.Clone(reads), func(r state.Read) bool { return f.of(&r) != nil })
	lookups := f.store.lookups(nil, reads)
	var commands []redis.Cmder
	var shards []int // by command
	for i := range lookups {
		commands = lookups[i].ask(ctx, commands)
		for len(shards) < len(commands) {
			shards = append(shards, f.store.shardOf(lookups[i].entity))
		}
	}
	f.store.send(ctx, f.store.masters.write, commands, func(i int) int { return shards[i] })
	for i := range lookups {
		l := &lookups[i]
		if err := l.err(); err != nil {
			return fmt.Errorf("read features: %w", err)
		}
		if err := f.take(reads, l); err != nil {
			for _, r := range l.reads {
				f.states[reads[r].Entity][reads[r].Series.ID] = damaged{err}
			}
		}
	}
	return nil
}

// take takes in what a key holds; the error is that this is damaged.
func (f *following) take(reads []state.Read, l *lookup) error {
	var states []wanted
	for _, r := range l.reads {
		states = f.want(states, &reads[r])
	}
	data, losses, err := l.reply() // it is only read
	if err != nil {
		return err
	}
	err = packed.Sections(data, func(tag uint32, body []byte) error {
		for _, w := range states {
			if w.tag == tag {
				return w.state.Merge(body)
			}
		}
		_, err := losses.Take(tag, body)
		return err
	})
	if err != nil {
		return keyspace.NewError(l.key, err)
	}
	for _, w := range states {
		if until := losses.Of(w.tag); until != nil {
			f.states[l.entity][w.series.ID] = lossy{w.state, until}
		}
	}
	return nil
}

// lossy is a state of which something was dropped.
type lossy struct {
	packed.State
	until *int64 // see state.WindowState.LostUntil
}

func (l lossy) Read(r *state.Read) state.WindowState {
	s := l.State.Read(r)
	s.LostUntil = l.until
	return s
}

// damaged is a state that cannot be read, whatever is added to it.
type damaged struct{ err error }

func (damaged) Apply(*state.Mutation)                {}
func (damaged) Merge([]byte) error                   { return nil }
func (damaged) Append(dst []byte) []byte             { return dst }
func (d damaged) Read(*state.Read) state.WindowState { return state.WindowState{Err: d.err} }
func (damaged) Prune(int64) (empty bool)             { return false }

// want adds the state that a read looks at to those of its key.
func (f *following) want(states []wanted, r *state.Read) []wanted {
	tag := r.Series.Tag()
	if slices.ContainsFunc(states, func(w wanted) bool { return w.tag == tag }) {
		return states
	}
	return append(states, wanted{tag: tag, series: r.Series, state: f.begin(r)})
}

// begin makes the empty state that a read looks at.
func (f *following) begin(r *state.Read) packed.State {
	if f.states[r.Entity] == nil {
		f.states[r.Entity] = make(map[string]packed.State)
	}
	empty := packed.NewKeyed(r.Series, f.secret)
	f.states[r.Entity][r.Series.ID] = empty
	return empty
}

// of is the state that a read looks at, nil where it is not followed.
func (f *following) of(r *state.Read) packed.State { return f.states[r.Entity][r.Series.ID] }

func (f *following) Add(b *state.Batch, t *state.EntityUpdate) {
	held := f.states[string(t.Entity)]
	for i := t.From; held != nil && i < t.To; i++ {
		if s := held[b.Mutations[i].Series.ID]; s != nil {
			s.Apply(&b.Mutations[i])
		}
	}
}

func (f *following) Read(r *state.Read) state.WindowState { return f.of(r).Read(r) }

func (f *following) Copy(reads []state.Read) state.Snapshot {
	c := f.store.newFollowing(f.secret)
	for i := range reads {
		r := &reads[i]
		if c.of(r) != nil {
			continue
		}
		empty := c.begin(r)
		if err := empty.Merge(f.of(r).Append(nil)); err != nil {
			panic(err) // it was packed on the same line
		}
		switch of := f.of(r).(type) {
		case damaged:
			c.states[r.Entity][r.Series.ID] = of
		case lossy:
			c.states[r.Entity][r.Series.ID] = lossy{empty, of.until}
		}
	}
	return c
}
