package redisstore

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A key that holds another type of value is an error, not an empty state.
func TestSnapshotOfDamagedKeys(t *testing.T) {
	t.Parallel()
	registry := defined.Registry(t, `
streams:
  event: {topic: transactions, timestamp: at, fields: {user: string}}
features:
  events: COUNT(lifetime, event, user)
`)
	onEach(t, 4, func(t *testing.T, s *Store) {
		ctx := context.Background()
		var reading query.Reading
		reading.Reset(0)
		reading.Want(registry.Features[0], "u", 0)
		reads := reading.Reads()
		key := s.lookups(nil, reads, false)[0].key
		shown := `key "` + strings.TrimSuffix(key, "u") + `…": `
		for name, damage := range map[string]func() error{
			"the state is damaged: the section at byte 0 reaches beyond the end, at byte 4": func() error {
				return s.redis.Set(ctx, key, "\x01\x02\x03\xff", 0).Err()
			},
			keyspace.ErrForeign.Error(): func() error {
				return errors.Join(s.redis.Del(ctx, key).Err(), s.redis.SAdd(ctx, key, "not ours").Err())
			},
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			f, err := s.Snapshot(ctx, reads)
			if err != nil {
				t.Fatal(err)
			}
			b := new(state.Batch)
			b.Update(0, 0, []byte("u"))
			b.Add(state.Mutation{Series: reads[0].Series, Num: 1})
			f.Add(b, &b.Updates[0])
			for _, held := range []state.Snapshot{f, f.Copy(reads)} {
				if windowState := held.Read(&reads[0]); windowState.Err == nil || windowState.Err.Error() != shown+name {
					t.Errorf("got error %v, want %s", windowState.Err, shown+name)
				}
			}
		}
	})
}
