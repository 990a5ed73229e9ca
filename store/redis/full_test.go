package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// fullAt is the length that a key may have before its next compaction.
const fullAt = 960 << 10

// padded is the content of a key that was never compacted and has a given length: sections of a
// series of members, which compact to a few kilobytes. Contents with other seeds differ.
func padded(series *state.Series, length, seed int) string {
	var p packed.Packer
	section := func(member string) []byte {
		p.Begin(series)
		p.Add(&state.Mutation{Series: series, Tile: 100, Text: &state.Text{Member: []byte(member)}})
		return p.End(nil)
	}
	one := section(fmt.Sprintf("%01000d", seed))
	content := strings.Repeat(string(one), (length-1000)/len(one))
	rest := length - len(content)
	content += string(section(strings.Repeat("m", rest-(len(one)-1000))))
	if len(content) != length {
		panic(fmt.Sprint(len(content)))
	}
	return content
}

func deviceKey(s *Store, device string) string {
	return string(keyspace.AppendKey(nil, s.tags[0], users.Group, []byte(device)))
}

// oneEvent is a batch with an event of the device d1 and of a user.
func oneEvent(t *testing.T, s *Store, user string) *state.Batch {
	b := begin(t, s, transactions)
	b.Series, b.Now, b.EveryShard = allSeries, 100*day, true
	b.Update(0, b.Ranges[0].To, []byte("d1"))
	b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	b.Add(state.Mutation{Series: users, Tile: 100, Text: &state.Text{Member: []byte(user)}})
	b.Ranges[0].To++
	return b
}

// long is a user whose event takes more than checkBytes.
var long = strings.Repeat("u", checkBytes)

// A key without room for what a batch appends is compacted before that. The other keys of the call
// still get the times to live that were due.
func TestFullKeysAreCompactedFirst(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		apply(t, w, oneEvent(t, s, "first"))
		s.redis.Set(t.Context(), deviceKey(s, "d1"), padded(users, fullAt-100, 1), time.Minute)
		s.redis.Set(t.Context(), deviceKey(s, "d2"), padded(users, 2000, 1), time.Minute)
		b := oneEvent(t, s, long)
		b.Update(0, b.Ranges[0].To, []byte("d2"))
		b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
		b.Ranges[0].To++
		apply(t, w, b)
		if length := s.redis.StrLen(t.Context(), deviceKey(s, "d1")).Val(); length > 10_000 {
			t.Errorf("the key has %d bytes", length)
		}
		if n := count(t, s, events, "d1") + count(t, s, events, "d2"); n != 2 || b.Ranges[0].Progress[0].Offset != 3 || b.Refused != 0 {
			t.Errorf("%d events are counted, %+v", n, b.Ranges[0])
		}
		if lives := s.redis.TTL(t.Context(), deviceKey(s, "d2")).Val(); lives < 9*24*time.Hour {
			t.Errorf("the other key lives for %v", lives)
		}
	})
}

// A single writer gets a key in time to compact it: no call finds it full, and so none is sent twice.
func TestSingleWriterFindsNoFullKeys(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		watch := &traffic{}
		s.redis.AddHook(watch)
		w := s.newWriter()
		for range 4 {
			b := begin(t, s, transactions)
			b.Series, b.Now, b.EveryShard = allSeries, 100*day, true
			for range 5000 {
				b.Update(0, b.Ranges[0].To, []byte("d1"))
				b.Add(state.Mutation{Series: users, Tile: 100, Text: &state.Text{Member: fmt.Appendf(nil, "%0116d", b.Ranges[0].To%2586)}})
				b.Ranges[0].To++
			}
			apply(t, w, b)
		}
		if watch.full > 0 || watch.out < 1<<20 {
			t.Errorf("%d calls found the key full, of which %d bytes were returned", watch.full, watch.out)
		}
	})
}

// Several calls of a pipeline that append a little each fill a key too. The batch is too long for all of its mutations
// to be combined.
func TestManySmallAppendsFillAKey(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		const calls, limit = 5, 90
		start(t, s, transactions)
		s.redis.Set(t.Context(), deviceKey(s, "d1"), padded(users, fullAt-700, 1), time.Hour)
		b := begin(t, s, transactions)
		b.Series, b.Now = allSeries, 100*day
		for range calls {
			for i := range state.ShardSlices / 2 * limit {
				device, user := fmt.Sprint("d", i+1), "u"
				if i == 0 {
					user = strings.Repeat("u", 300)
				}
				b.Update(0, b.Ranges[0].To, []byte(device))
				b.Add(state.Mutation{Series: users, Tile: 100, Text: &state.Text{Member: []byte(user)}})
				b.Ranges[0].To++
			}
		}
		w := s.newWriter()
		for i := range w.shards {
			w.shards[i].limit = limit
		}
		apply(t, w, b)
		if length := s.redis.StrLen(t.Context(), deviceKey(s, "d1")).Val(); length > 10_000 {
			t.Errorf("the key has %d bytes", length)
		}
	})
}

// The key of a child without room for what its parent spills is compacted before that.
func TestFullChildrenAreCompactedFirst(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		key, random := childKey(s, metBy, "d1|u1"), rand.New(rand.NewPCG(3, 4))
		s.redis.Set(t.Context(), key, padded(metBy, fullAt, 1), 0)
		w, spilled := s.newWriter(), false
		for range 8 {
			b, _ := crowdBatch(t, s, transactions, random, 500, true)
			apply(t, w, b)
			length := s.redis.StrLen(t.Context(), key).Val()
			if spilled = spilled || length > 20_000 && length < fullAt; length > fullAt {
				t.Errorf("the child's key has %d bytes", length)
			}
		}
		if !spilled {
			t.Error("nothing was spilled")
		}
	})
}

// An event that takes more than a key may grow by is applied once the key has been compacted.
func TestEventsLongerThanTheRoom(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w, user := s.newWriter(), strings.Repeat("u", 500<<10)
		for n := range 3 {
			apply(t, w, oneEvent(t, s, user+fmt.Sprint(n)))
		}
		if length := s.redis.StrLen(t.Context(), deviceKey(s, "d1")).Val(); length < 1500<<10 {
			t.Errorf("the key has %d bytes", length)
		}
	})
}

// refilling makes a key full again before each script call, as other writers may.
type refilling struct {
	client redis.UniversalClient
	key    string
	times  int
}

func (r *refilling) fill(ctx context.Context) error {
	r.times++
	return r.client.Set(ctx, r.key, padded(users, fullAt, r.times), 0).Err()
}

func (*refilling) DialHook(next redis.DialHook) redis.DialHook { return next }

func (r *refilling) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			if err := r.fill(ctx); err != nil {
				return err
			}
		}
		return next(ctx, cmd)
	}
}

func (r *refilling) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if err := r.fill(ctx); err != nil {
			return err
		}
		return next(ctx, cmds)
	}
}

// A batch that never finds room fails, and waits like any batch that Redis refuses.
func TestBatchesWithoutRoomFail(t *testing.T) {
	t.Parallel()
	client := miniredis(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	b := oneEvent(t, s, long)
	other := redis.NewClient(client.Options())
	defer other.Close()
	rival := &refilling{client: other, key: deviceKey(s, "d1")}
	client.AddHook(rival)
	if err := s.newWriter().Apply(t.Context(), b); !errors.Is(err, errFull) || rival.times < maxFull || rival.times > 2*maxFull {
		t.Errorf("after %d attempts: %v", rival.times, err)
	}
	if progress, err := s.Progress(t.Context(), []state.Partition{transactions}); err != nil || slices.ContainsFunc(progress[0], func(p state.Position) bool { return p.Offset > 0 }) {
		t.Errorf("progress %v, %v", progress, err)
	}
}
