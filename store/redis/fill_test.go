package redisstore

import (
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Plans that keep a group for different times write into one key: it lives for as long as the
// longest needs, also if that is forever.
func TestTimesToLiveAreNotShortened(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		keeping := func(keep int64) *state.Series {
			series := *events
			series.GroupKeep = keep
			return &series
		}
		offset := int64(0)
		lives := func(keep int64) time.Duration {
			b := begin(t, s, transactions)
			b.Series, b.Now = allSeries, 100*day
			b.Ranges[0].Progress[0].Offset, b.Ranges[0].To = offset, offset+1
			b.Update(0, offset, []byte("d1"))
			b.Add(state.Mutation{Series: keeping(keep), Tile: 100, Num: 1})
			offset++
			s.makeExpiries()
			s.expiry[0].forget() // as another process would
			apply(t, s.newWriter(), b)
			left, err := s.redis.TTL(t.Context(), string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))).Result()
			if err != nil {
				t.Fatal(err)
			}
			return left
		}
		if left := lives(day); left > 2*24*time.Hour {
			t.Errorf("a key kept for a day expires after %v", left)
		}
		if left := lives(8 * day); left < 8*24*time.Hour {
			t.Errorf("a key kept for eight days expires after %v", left)
		}
		if left := lives(day); left < 8*24*time.Hour {
			t.Errorf("a key that was kept for eight days now expires after %v", left)
		}
		if left := lives(0); left != -1 {
			t.Errorf("a key that is kept forever expires after %v", left)
		}
		if left := lives(8 * day); left != -1 {
			t.Errorf("a key that was kept forever now expires after %v", left)
		}
	})
}
