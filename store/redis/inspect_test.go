package redisstore

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

func TestInspect(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions, logins)
		b := begin(t, s, transactions, logins)
		fill(b, 0, event{offset: 0, device: "d1", user: "u1", time: 101 * day})
		b.EveryShard = true
		apply(t, s.newWriter(), b)
		shard := state.Shard(state.EntityHash([]byte("d1")), s.Shards())
		for series, kept := range map[*state.Series]bool{users: false, ever: true} {
			group := series.Group
			h, err := s.Inspect(ctx, series, "d1")
			if err != nil || h.Shard != shard || h.Key != string(keyspace.AppendKey(nil, s.tags[shard], group, []byte("d1"))) || len(h.Packed) == 0 {
				t.Errorf("group %s: %+v, %v", group, h, err)
			}
			if kept != (h.TimeToLive == 0) || !kept && (h.TimeToLive < 9*24*time.Hour || h.TimeToLive > 11*24*time.Hour) {
				t.Errorf("group %s expires after %v", group, h.TimeToLive)
			}
		}
		if h, err := s.Inspect(ctx, users, "d2"); err != nil || h.Packed != nil || h.TimeToLive != 0 {
			t.Errorf("a missing key: got %+v, error %v", h, err)
		}
		h, _ := s.Inspect(ctx, users, "d3")
		s.redis.SAdd(ctx, h.Key, "not ours")
		if h, err := s.Inspect(ctx, users, "d3"); err != nil || h.Type != "set" || h.Packed != nil {
			t.Errorf("a foreign key: %+v, %v", h, err)
		}

		s.redis.HSet(ctx, keyspace.ProgressKey(s.tags[shard]), "strange", "1")
		record, err := s.ShardProgress(ctx, shard)
		offsets := map[state.Partition]int64{}
		for p, h := range record.Held() {
			offsets[p] = h.At.Offset
		}
		if want := (map[state.Partition]int64{transactions: 1, logins: 0}); err != nil || record.Newest() != 101*day || !maps.Equal(offsets, want) {
			t.Errorf("record %+v, %v; want %v", record, err, want)
		}
	})
}
