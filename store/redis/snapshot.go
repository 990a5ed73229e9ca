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

// Snapshot reads the complete states of the reads into memory. It writes nothing.
func (s *Store) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	taken := s.newSnapshot(secret)
	if err := taken.Extend(ctx, reads); err != nil {
		return nil, err
	}
	return taken, nil
}

// snapshot holds states in memory. It has a view of a key for each time that it was read: when the snapshot was taken,
// and when an extension needed more of its series.
type snapshot struct {
	store  *Store
	secret state.Secret
	views  map[entityKey][]*packed.View
}

func (s *Store) newSnapshot(secret state.Secret) *snapshot {
	return &snapshot{store: s, secret: secret, views: make(map[entityKey][]*packed.View)}
}

func (s *snapshot) Extend(ctx context.Context, reads []state.Read) error {
	reads = slices.DeleteFunc(slices.Clone(reads), func(r state.Read) bool { return s.has(&r) })
	lookups := s.store.lookups(nil, reads, false)
	var commands []redis.Cmder
	var shards []int // by command
	for i := range lookups {
		commands = lookups[i].ask(ctx, commands)
		for len(shards) < len(commands) {
			shards = append(shards, s.store.shardOf(lookups[i].entity))
		}
	}
	s.store.send(ctx, s.store.masters.write, commands, func(i int) int { return shards[i] })
	for i := range lookups {
		l := &lookups[i]
		if err := l.err(); err != nil {
			return fmt.Errorf("read features: %w", err)
		}
		s.take(reads, l)
	}
	return nil
}

// take takes the content of a key.
func (s *snapshot) take(reads []state.Read, l *lookup) {
	v := &packed.View{Secret: s.secret}
	for _, r := range l.reads {
		v.Add(reads[r].Series)
	}
	v.Begin()
	s.add(entityKey{l.group, l.entity}, v)
	var data []byte
	if data, v.Losses, v.Err = l.reply(); v.Err != nil { // read only
		return
	}
	if err := v.Merge(data); err != nil {
		v.Err = keyspace.NewError(l.key, err)
	}
}

func (s *snapshot) add(k entityKey, v *packed.View) { s.views[k] = append(s.views[k], v) }

// find returns the view that a read needs, and the index of its series there; nil if the snapshot lacks it.
func (s *snapshot) find(r *state.Read) (*packed.View, int) {
	for _, v := range s.views[entityKey{r.Series.Group, r.Entity}] {
		if i := v.Index(r.Series); i >= 0 {
			return v, i
		}
	}
	return nil, -1
}

func (s *snapshot) has(r *state.Read) bool {
	v, _ := s.find(r)
	return v != nil
}

func (s *snapshot) Add(b *state.Batch, u *state.EntityUpdate) {
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

func (s *snapshot) Read(r *state.Read) (answer state.WindowState) {
	v, i := s.find(r)
	v.Read(i, r, &answer)
	return answer
}

func (s *snapshot) Copy(reads []state.Read) state.Snapshot {
	c := s.store.newSnapshot(s.secret)
	for i := range reads {
		if r := &reads[i]; !c.has(r) {
			v, at := s.find(r)
			c.add(entityKey{r.Series.Group, r.Entity}, v.Copy(at))
		}
	}
	return c
}
