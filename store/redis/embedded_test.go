package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

// Series of a device and of a user, whose state is embedded in that of the device.
var (
	pairs = &state.Series{ID: "pairs", Group: "pairs", Parent: "devic", By: []string{"device", "user"}, Measure: state.CountEvents,
		Tile: day, Keep: 20 * day, GroupKeep: 21 * day, ParentKeep: 21 * day}
	pairSpread = &state.Series{ID: "sprea", Group: "pairs", Parent: "devic", By: []string{"device", "user"}, Measure: state.ValueMoments, Type: value.Decimal,
		Scale: 2, Tile: day, Keep: 20 * day, GroupKeep: 21 * day, ParentKeep: 21 * day}
	others = &state.Series{ID: "other", Group: "other", Parent: "devic", By: []string{"device", "card"}, Measure: state.CountEvents,
		Tile: day, Keep: 20 * day, GroupKeep: 21 * day, ParentKeep: 21 * day}
	beside = &state.Series{ID: "besid", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 8 * day, GroupKeep: 21 * day}

	pairSeries = []*state.Series{pairs, pairSpread, others, beside}
)

// fillPairs maps events to counts of their device, user and card.
func fillPairs(b *state.Batch, list ...event) {
	b.Series = pairSeries
	for _, e := range list {
		b.Now = max(b.Now, e.time)
		tile := state.FloorDiv(e.time, day)
		b.Update(0, e.offset, []byte(e.device))
		b.Add(state.Mutation{Series: beside, Tile: tile, Num: 1})
		b.Update(0, e.offset, []byte(e.device+"|"+e.user))
		b.Add(state.Mutation{Series: pairs, Tile: tile, Num: 1})
		b.Add(state.Mutation{Series: pairSpread, Tile: tile, Num: 4611686018427387904 + e.cents})
		b.Update(0, e.offset, []byte(e.device+"|"+e.user)) // a card of the same name
		b.Add(state.Mutation{Series: others, Tile: tile, Num: 1})
		b.Ranges[0].To = e.offset + 1
	}
}

// count reads how many events an entity has.
func count(t testing.TB, s *Store, series *state.Series, entity string) (n int64) {
	t.Helper()
	windowStates, err := s.Read(context.Background(), []state.Read{{Series: series, Entity: entity, First: 0, Last: 1000}})
	if err != nil || windowStates[0].Err != nil {
		t.Fatal(entity, err, windowStates[0].Err)
	}
	for _, b := range windowStates[0].Buckets {
		n += b.Value.Num
	}
	return n
}

// A device and its pair count alike: sections around that of the child do not share bodies with those in it.
func TestEqualBodiesAroundAChild(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		after := *beside
		after.ID = "after"
		b := begin(t, s, transactions)
		b.Series, b.Now = append(pairSeries[:len(pairSeries):len(pairSeries)], &after), 100*day
		counts := []struct {
			series *state.Series
			entity string
		}{{beside, "d1"}, {pairs, "d1|u0"}, {&after, "d1"}}
		for _, c := range counts {
			b.Update(0, 0, []byte(c.entity))
			b.Add(state.Mutation{Series: c.series, Tile: 100, Num: 1})
		}
		b.Ranges[0].To = 1
		apply(t, s.newWriter(), b)
		for _, c := range counts {
			if n := count(t, s, c.series, c.entity); n != 1 {
				t.Errorf("%s has a count of %d in series %s, want 1", c.entity, n, c.series.ID)
			}
		}
	})
}

func childKey(s *Store, series *state.Series, entity string) string {
	return string(s.appendKey(nil, series, entity))
}

// State of a pair is embedded in the key of its first value while it is short, spilled to a key of its own when it is
// long, and read from both.
func TestChildrenAreEmbeddedAndSpilled(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]Option{"plain": nil, "hashed": {HashEntities(secret)}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, plain *Store) {
				ctx := t.Context()
				s := New(plain.redis, plain.namespace+"-pairs", 1, options...)
				if err := s.Create(ctx); err != nil {
					t.Fatal(err)
				}
				start(t, s, transactions)
				w := s.newWriter()
				b := begin(t, s, transactions)
				fillPairs(b, event{offset: 0, device: "d1", user: "u0", time: 100 * day})
				apply(t, w, b)
				if n := s.redis.Exists(ctx, childKey(s, pairs, "d1|u0")).Val(); n != 0 || count(t, s, pairs, "d1|u0") != 1 {
					t.Errorf("%d keys for a pair that occurred once, want none", n)
				}
				want := map[string]int64{"d1|u0": 1}
				random := rand.New(rand.NewPCG(1, 2))
				for offset := int64(1); offset < 2000; offset += 20 {
					b := begin(t, s, transactions)
					for i := range int64(20) {
						e := event{offset: offset + i, device: fmt.Sprint("d", 1+i%2), user: fmt.Sprint("u", random.IntN(150)), time: 100*day + random.Int64N(5*day), cents: i}
						want[e.device+"|"+e.user]++
						fillPairs(b, e)
					}
					apply(t, w, b)
				}
				own := int64(0)
				for entity, n := range want {
					if got, other := count(t, s, pairs, entity), count(t, s, others, entity); got != n || other != n {
						t.Fatalf("%s counts %d and %d, want %d", entity, got, other, n)
					}
					key := childKey(s, pairs, entity)
					n := s.redis.Exists(ctx, key).Val()
					if own += n; n == 1 {
						if ttl := s.redis.TTL(ctx, key).Val(); ttl < 21*24*time.Hour || ttl > 25*24*time.Hour {
							t.Fatalf("%s expires after %v, want 21 to 25 days", key, ttl)
						}
					}
				}
				if length := s.redis.StrLen(ctx, childKey(s, beside, "d1")).Val(); own < 200 || length > 8192 {
					t.Errorf("%d of %d pairs have keys, the parent's has %d bytes", own, len(want), length)
				}
				if n := count(t, s, beside, "d1"); n != 1001 {
					t.Errorf("the parent counts %d, want 1001", n)
				}
			})
		})
	}
}

// Keys of spilled children are compacted like any others.
func TestSpilledKeysAreCompacted(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		longest := int64(0)
		for offset := int64(0); offset < 6000; offset += 50 {
			b := begin(t, s, transactions)
			for i := range int64(50) {
				fillPairs(b, event{offset: offset + i, device: "d1", user: fmt.Sprint("u", i), time: 100 * day, cents: i})
			}
			apply(t, w, b)
			longest = max(longest, s.redis.StrLen(t.Context(), childKey(s, pairs, "d1|u7")).Val())
		}
		if longest == 0 || longest > 1000 {
			t.Errorf("a key of one tile and 120 events grew to %d bytes", longest)
		}
		if n := count(t, s, pairs, "d1|u7"); n != 120 {
			t.Errorf("the pair counts %d, want 120", n)
		}
	})
}

// A damaged pair within its parent's key can be dropped without the others.
func TestDamagedChild(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := t.Context()
		start(t, s, transactions)
		b := begin(t, s, transactions)
		fillPairs(b, event{offset: 0, device: "d1", user: "u1", time: 100 * day}, event{offset: 1, device: "d1", user: "u2", time: 100 * day})
		apply(t, s.newWriter(), b)
		parent := childKey(s, beside, "d1")
		broken := packed.AppendChild(nil, packed.Child{Tag: state.EmbeddingTag("pairs"), Name: []byte("u1"), Sections: []byte{1, 2, 3, 9}})
		s.redis.Append(ctx, parent, string(broken))
		damage := func(entity string) error {
			windowStates, err := s.Read(ctx, []state.Read{{Series: pairs, Entity: entity, First: 0, Last: 1000}})
			if err != nil {
				t.Fatal(err)
			}
			return windowStates[0].Err
		}
		if damage("d1|u1") == nil || damage("d1|u2") != nil || count(t, s, beside, "d1") != 2 {
			t.Errorf("damage of the pairs: %v, %v; want the first only", damage("d1|u1"), damage("d1|u2"))
		}
		held, err := s.Inspect(ctx, pairs, "d1|u1")
		if err != nil || held.Parent != parent {
			t.Fatal(held, err)
		}
		known := func(tag uint32) *state.Series {
			for _, s := range pairSeries {
				if s.Tag() == tag {
					return s
				}
			}
			return nil
		}
		kept := packed.Salvaged(held.Packed, known)
		if kept.Wrong == nil {
			t.Fatal("the damage was not found")
		}
		loss := packed.Loss{Tags: kept.Tags}
		if progress, err := s.Drop(ctx, held, kept.Kept, loss, pairs.GroupKeep); err != nil || progress.Newest() != 100*day {
			t.Fatal(progress, err)
		}
		if _, err := s.Drop(ctx, held, kept.Kept, loss, pairs.GroupKeep); !errors.Is(err, inspector.ErrChanged) {
			t.Errorf("a second drop: got error %v, want that the key has changed", err)
		}
		windowStates, err := s.Read(ctx, []state.Read{{Series: pairs, Entity: "d1|u1", First: 0, Last: 1000}})
		if err != nil || windowStates[0].Err != nil || windowStates[0].LostUntil == nil || *windowStates[0].LostUntil != 100*day {
			t.Errorf("after the drop: got %+v, error %v; want a loss", windowStates, err)
		}
		if count(t, s, pairs, "d1|u2") != 1 || count(t, s, others, "d1|u1") != 1 || count(t, s, beside, "d1") != 2 {
			t.Error("others were dropped too")
		}
		if ttl := s.redis.TTL(ctx, parent).Val(); ttl < 21*24*time.Hour {
			t.Errorf("the parent expires after %v, want at least 21 days", ttl)
		}
	})
}

// If the key of a parent is damaged or was dropped, reads of its children say so.
func TestDamagedParent(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := t.Context()
		start(t, s, transactions)
		b := begin(t, s, transactions)
		fillPairs(b, event{offset: 0, device: "d1", user: "u1", time: 100 * day})
		apply(t, s.newWriter(), b)
		parent := childKey(s, beside, "d1")
		read := func() state.WindowState {
			t.Helper()
			windowStates, err := s.Read(ctx, []state.Read{{Series: pairs, Entity: "d1|u1", First: 0, Last: 1000}})
			if err != nil {
				t.Fatal(err)
			}
			return windowStates[0]
		}
		s.redis.Append(ctx, parent, "\x01\x02\x03\x7f")
		if err := read().Err; err == nil || !strings.Contains(err.Error(), "devic:") {
			t.Errorf("the error is %v, which does not name the parent's key", err)
		}
		if held, err := s.Inspect(ctx, pairs, "d1|u1"); err != nil || held.ParentDamage == nil {
			t.Errorf("want the parent's damage, got %+v, error %v", held, err)
		}
		held, err := s.Inspect(ctx, beside, "d1")
		if err != nil {
			t.Fatal(err)
		}
		kept := packed.Salvaged(held.Packed, func(uint32) *state.Series { return nil })
		if _, err := s.Drop(ctx, held, kept.Kept, packed.Loss{Tags: kept.Tags}, beside.GroupKeep); err != nil {
			t.Fatal(err)
		}
		if got := read(); got.Err != nil || got.LostUntil == nil || *got.LostUntil != 100*day {
			t.Errorf("after the drop: %+v", got)
		}
		s.redis.Del(ctx, parent)
		s.redis.SAdd(ctx, parent, "not ours")
		if err := read().Err; !errors.Is(err, keyspace.ErrForeign) {
			t.Errorf("a foreign parent: got error %v", err)
		}
		if held, err := s.Inspect(ctx, pairs, "d1|u1"); err != nil || held.ParentDamage == nil {
			t.Errorf("want the parent's damage, got %+v, error %v", held, err)
		}
	})
}
