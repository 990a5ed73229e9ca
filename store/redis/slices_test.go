package redisstore

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// cutOff is a hook that lets a number of script calls reach the server. The others fail.
type cutOff struct{ left int }

const unlimited = math.MaxInt

// errCutOff is an error that the server could have replied: its master counts as available.
var errCutOff redis.Error = refusal("ERR cut off")

type refusal string

func (r refusal) Error() string { return string(r) }
func (refusal) RedisError()     {}

func (*cutOff) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (*cutOff) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (c *cutOff) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for i, cmd := range cmds {
			if cmd.Name() != "evalsha" {
				continue
			}
			if c.left--; c.left >= 0 {
				continue
			}
			for _, lost := range cmds[i:] {
				lost.SetErr(errCutOff)
			}
			if i == 0 {
				return errCutOff
			}
			return next(ctx, cmds[:i])
		}
		return next(ctx, cmds)
	}
}

// A batch of many calls is interrupted after any of them. Another writer, with other batches, applies the rest: nothing
// is lost, and nothing counts twice.
func TestBatchInterruptedBetweenSlices(t *testing.T) {
	client, hook := redistest.Shared(t).Client(t), &cutOff{}
	client.AddHook(hook)
	ahead := 0
	for calls := 0; ; calls++ {
		random := rand.New(rand.NewPCG(uint64(calls), 5))
		list := randomEvents(random, 120)
		hook.left = unlimited
		s := newStore(t, client, 2, CallMutations(20))
		start(t, s, transactions, logins)
		first := begin(t, s, transactions, logins)
		fill(first, 0, list[:100]...)
		fill(first, 1, list[:80]...)
		hook.left = calls
		err := s.newWriter().Apply(t.Context(), first)
		hook.left = unlimited
		for w, rest := s.newWriter(), true; rest; {
			b := begin(t, s, transactions, logins)
			rest = false
			for i, end := range []int64{120, 80} {
				for _, at := range b.Ranges[i].Progress {
					if at.Slices > 0 {
						ahead++
					}
				}
				from := state.Lowest(b.Ranges[i].Progress)
				fill(b, i, list[from:min(from+random.Int64N(40), end)]...)
				rest = rest || from < end
			}
			b.EveryShard = true
			apply(t, w, b)
		}
		checkAll(t, s, slices.Concat(list, list[:80]))
		if t.Failed() {
			t.Fatalf("the counts differ after an interruption after %d calls", calls)
		}
		if err == nil {
			break // the batch has no more calls
		}
	}
	if ahead < 20 {
		t.Errorf("%d positions had slices ahead, want at least 20: the batches had too few calls", ahead)
	}
}

// Calls of a long batch combine the mutations of all of its events, and stay short.
func TestLongBatchesCombine(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 2, CallMutations(40))
	start(t, s, transactions)
	b := begin(t, s, transactions)
	b.Series = allSeries
	for offset := range int64(600) {
		b.Update(0, offset, fmt.Appendf(nil, "d%d", offset%60))
		b.Add(state.Mutation{Series: events, Tile: 101, Num: 1})
		b.Ranges[0].To = offset + 1
	}
	apply(t, s.newWriter(), b)
	if b.Calls != 2 { // 30 mutations in each shard
		t.Errorf("600 events of 60 devices took %d calls of 40 mutations, want one for each of 2 shards", b.Calls)
	}
}

// The mutations of an event go together, however many entities of a shard it changes: a position cannot divide them.
func TestEventsAreNotDivided(t *testing.T) {
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 1, CallMutations(1))
	start(t, s, transactions)
	b := begin(t, s, transactions)
	b.Series = allSeries
	const devices = 5
	for offset := range int64(2) {
		for device := range devices {
			b.Update(0, offset, fmt.Appendf(nil, "d%d", device))
			b.Add(state.Mutation{Series: events, Tile: 101 + offset, Num: 1})
		}
		b.Ranges[0].To = offset + 1
	}
	apply(t, s.newWriter(), b)
	for device := range devices {
		states, err := s.Read(t.Context(), []state.Read{{Series: events, Entity: fmt.Sprint("d", device), First: 101, Last: 102}})
		if err != nil {
			t.Fatal(err)
		}
		if got := states[0].Buckets; len(got) != 2 {
			t.Errorf("d%d has the buckets %v, want those of 2 events", device, got)
		}
	}
}
