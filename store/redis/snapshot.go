package redisstore

import (
	"context"
	"fmt"

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
	return packed.NewSnapshot(ctx, func(ctx context.Context, reads []state.Read, add func(group, entity string, v *packed.View)) error {
		return s.readViews(ctx, secret, reads, add)
	}, reads)
}

// readViews reads the keys that reads need, and passes on a view of each.
func (s *Store) readViews(ctx context.Context, secret state.Secret, reads []state.Read, add func(group, entity string, v *packed.View)) error {
	lookups := s.lookups(nil, reads, false)
	var commands []redis.Cmder
	var shards []int // by command
	for i := range lookups {
		commands = lookups[i].ask(ctx, commands)
		for len(shards) < len(commands) {
			shards = append(shards, s.shardOf(lookups[i].entity))
		}
	}
	s.send(ctx, s.masters.write, commands, func(i int) int { return shards[i] })
	for i := range lookups {
		l := &lookups[i]
		if err := l.err(); err != nil {
			return fmt.Errorf("read features: %w", err)
		}
		add(l.group, l.entity, l.view(reads, secret))
	}
	return nil
}

// view unpacks the content of a key. If it cannot be read, that is the error of the view.
func (l *lookup) view(reads []state.Read, secret state.Secret) *packed.View {
	v := &packed.View{Secret: secret}
	for _, r := range l.reads {
		v.Add(reads[r].Series)
	}
	v.Begin()
	var data []byte
	if data, v.Losses, v.Err = l.reply(); v.Err != nil { // read only
		return v
	}
	if err := v.Merge(data); err != nil {
		v.Err = keyspace.NewError(l.key, err)
	}
	return v
}
