package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Reads equal a plain loop over the events, for any division of the events into batches.
func TestApplyEqualsPlainLoop(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		random := rand.New(rand.NewPCG(1, 2))
		start(t, s, transactions)
		list := randomEvents(random, 1000)
		w := s.newWriter()
		for rest := list; len(rest) > 0; {
			n := min(1+random.IntN(300), len(rest))
			b := begin(t, s, transactions)
			fill(b, 0, rest[:n]...)
			apply(t, w, b)
			rest = rest[n:]
		}
		checkAll(t, s, list)
	})
}

// A batch with more mutations than a call takes is cut between events, and continues after any of
// the cuts.
func TestLongBatchIsCut(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		var list []event
		for i := range 500 {
			list = append(list, event{
				offset: int64(i), device: fmt.Sprint("d", i%9), user: fmt.Sprint("u", i), time: 100*day + int64(i), cents: int64(i),
			})
		}
		b := begin(t, s, transactions)
		fill(b, 0, list...)
		w := s.newWriter()
		apply(t, w, b)
		if len(w.calls) != 0 || b.Ranges[0].Progress[0].Offset != 500 {
			t.Fatalf("progress %v after the batch, want 500", b.Ranges[0].Progress[0])
		}
		got := holds(t, s, "d4", 100, 106)
		want := expected(list, "d4", 100, 106)
		if firstLines(got, 6) != firstLines(want, 6) {
			t.Errorf("device d4:\n%s\nwant\n%s", got, want)
		}
	})
}

func firstLines(text string, n int) string {
	return strings.Join(strings.SplitN(text, "\n", n+1)[:n], "\n")
}

// A server that lost the script gets it again, and only failed calls are resent.
func TestScriptForgotten(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		list := randomEvents(rand.New(rand.NewPCG(5, 6)), 50)
		b := begin(t, s, transactions)
		fill(b, 0, list...)
		if cluster, ok := s.redis.(*redis.ClusterClient); ok {
			err := cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error {
				return c.ScriptFlush(ctx).Err()
			})
			if err != nil {
				t.Fatal(err)
			}
		} else if err := s.redis.ScriptFlush(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		apply(t, s.newWriter(), b)
		checkAll(t, s, list)
	})
}

// A string that is not a state is dropped with a note when compacted, and reads as damaged before and after. The error
// has the key, but its text does not name the entity. Other keys of the same question are read.
func TestForeignString(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		key := string(keyspace.AppendKey(nil, s.tags[0], users.Group, []byte("d1")))
		foreign := strings.Repeat("\xff", 800)
		s.redis.Set(ctx, key, foreign, 0)
		b, w := begin(t, s, transactions), s.newWriter()
		fill(b, 0, event{offset: 0, device: "d1", user: "u1", time: 101 * day})
		apply(t, w, b)
		shown := strings.TrimSuffix(key, "d1") + "…"
		const what = "the state is damaged: the section at byte 0 reaches beyond the end, at byte "
		if want := fmt.Sprintf("key %q: %s%d", shown, what, s.redis.StrLen(ctx, key).Val()); b.Refused != 1 || b.Refusal != want || b.RefusedKey != key {
			t.Errorf("%d refused, %q, %q; want %q, %q", b.Refused, b.Refusal, b.RefusedKey, want, key)
		}
		for n := range int64(2) {
			windowStates, err := s.Read(ctx, []state.Read{{Series: events, Entity: "d1", First: 101, Last: 101}, {Series: ever, Entity: "d1"}})
			if err != nil || windowStates[1].Err != nil || windowStates[1].Buckets[0].Value.Num != 1+n {
				t.Fatalf("%+v, %v", windowStates, err)
			}
			err = windowStates[0].Err
			if want := fmt.Sprintf("key %q: %s", shown, what); err == nil || !strings.HasPrefix(err.Error(), want) || windowStates[0].Buckets != nil {
				t.Errorf("reading it: %v, want %s", err, want)
			}
			var named interface{ Key() string }
			if !errors.As(err, &named) || named.Key() != key {
				t.Errorf("the error names the key %v, want %s", named, key)
			}
			b := begin(t, s, transactions)
			fill(b, 0, event{offset: 1 + n, device: "d1", user: "u1", time: 101 * day})
			apply(t, w, b)
		}
		if held := s.redis.Get(ctx, key).Val(); strings.Contains(held, foreign[:10]) {
			t.Errorf("the foreign string became %q", held)
		}
	})
}

// A Redis that refuses to write does so before anything changes.
func TestFullMemoryChangesNothing(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	client := server.Client(t)
	s := newStore(t, client, 1)
	start(t, s, transactions)
	ctx := context.Background()
	client.ConfigSet(ctx, "maxmemory", "1")
	list := []event{{offset: 0, device: "d1", user: "u1", time: 101 * day, cents: 7}}
	b := begin(t, s, transactions)
	fill(b, 0, list...)
	w := s.newWriter()
	if err := w.Apply(ctx, b); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Fatalf("error %v, want one of the full memory", err)
	}
	checkAll(t, s, nil)
	client.ConfigSet(ctx, "maxmemory", "0")
	apply(t, w, b)
	checkAll(t, s, list)
}

// A sum beyond 64 bits within a batch, between batches or in a compaction is exact, also if it later fits into 64 bits.
func TestSumsExceed64Bits(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		total := new(big.Int)
		for i := range int64(60) {
			b := begin(t, s, transactions)
			b.Series, b.Now = allSeries, 100*day
			b.Update(0, i, []byte("d1"))
			for _, cents := range []int64{9e18, 9e18, 9e18, -8e18 - i} {
				if i >= 30 {
					cents = -cents
				}
				total.Add(total, big.NewInt(cents))
				b.Add(state.Mutation{Series: amount, Tile: 100, Num: cents})
			}
			b.Ranges[0].To = i + 1
			apply(t, w, b)
			windowStates, err := s.Read(context.Background(), []state.Read{{Series: amount, Entity: "d1", First: 100, Last: 100}})
			if err != nil {
				t.Fatal(err)
			}
			if got := windowStates[0].Buckets[0].Value; got.Big().Cmp(total) != 0 || got.Saturated() {
				t.Fatalf("after %d: the sum is %s, want %s", i, got.AppendText(nil), total)
			}
		}
	})
}
