package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// traffic watches the pipelines of a client: the bytes of arguments and replies, and the keys that
// one pipeline returned more than once.
type traffic struct {
	in, out int
	widest  int // the most calls of one pipeline
	full    int // calls that found keys full
	twice   []any
}

func (*traffic) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*traffic) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (w *traffic) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		handed, calls := map[any]bool{}, 0
		for _, c := range cmds {
			for _, arg := range c.Args() {
				w.in += len(textOf(arg))
			}
			if once, ok := c.(*sentOnce); ok {
				c = once.Cmder
			}
			cmd, ok := c.(*redis.Cmd)
			if !ok {
				continue // a read
			}
			reply, _ := cmd.Slice()
			if len(reply) < 2 {
				continue // a replacement
			}
			calls++
			if reply[0] == "full" {
				w.full++
			}
			for rest := reply[2:]; len(rest) > 1; rest = rest[2:] {
				w.out += len(textOf(rest[1]))
				if handed[rest[0]] {
					w.twice = append(w.twice, rest[0])
				}
				handed[rest[0]] = true
			}
		}
		w.widest = max(w.widest, calls)
		return err
	}
}

func textOf(arg any) string {
	switch arg := arg.(type) {
	case string:
		return arg
	case *string:
		return *arg
	case []byte:
		return string(arg)
	default:
		return fmt.Sprint(arg)
	}
}

// checkHot compares the exact answers for the only device with its events.
func checkHot(t *testing.T, s *Store, list []event) {
	t.Helper()
	windowStates, err := s.Read(context.Background(), []state.Read{
		{Series: events, Entity: "d1", First: 100, Last: 100}, {Series: users, Entity: "d1", First: 100, Last: 100}, {Series: ever, Entity: "d1"},
	})
	if err != nil {
		t.Fatal(err)
	}
	n := len(list)
	if got, all := windowStates[0].Buckets[0].Value.Num, windowStates[2].Buckets[0].Value.Num; got != int64(n) || all != int64(n) || len(windowStates[1].Members) != n {
		t.Errorf("counted %d and %d events of %d users, want %d", got, all, len(windowStates[1].Members), n)
	}
}

// A key that many calls of a batch append to is returned by one of them, and the bytes returned are in proportion to
// the bytes appended.
func TestHotKeyIsACandidateOncePerPipeline(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		watch := &traffic{}
		s.redis.AddHook(watch)
		w := s.newWriter()
		var list []event
		greatest := 0
		for batch := range 10 {
			b := begin(t, s, transactions)
			for i := range 700 {
				list = append(list, event{
					offset: int64(len(list)), device: "d1", user: fmt.Sprintf("%d-%d-%s", batch, i, strings.Repeat("u", 60)),
					time: 100*day + int64(i), cents: 1,
				})
			}
			fill(b, 0, list[batch*700:]...)
			b.EveryShard = true
			apply(t, w, b)
			greatest = max(greatest, b.GreatestKey)
			if got := b.Ranges[0].Progress[0]; got.Offset != int64(len(list)) {
				t.Fatalf("the progress is %v, want %d", got, len(list))
			}
		}
		checkHot(t, s, list)
		if watch.widest < 3 {
			t.Fatalf("a pipeline had at most %d calls, so nothing was tested", watch.widest)
		}
		if len(watch.twice) > 0 {
			t.Errorf("%d times a pipeline handed out a key twice", len(watch.twice))
		}
		if got := s.redis.StrLen(context.Background(), string(keyspace.AppendKey(nil, s.tags[0], users.Group, []byte("d1")))).Val(); int64(greatest) < got/2 {
			t.Errorf("the greatest key is reported with %d bytes, and has %d", greatest, got)
		}
		if watch.out > 3*watch.in {
			t.Errorf("%d bytes were handed out for %d that were sent", watch.out, watch.in)
		}
	})
}

// What one pipeline appends to a key is bounded: the rest of the batch goes with the next ones, and
// the progress of all partitions moves correctly.
func TestHotKeyInSeveralPipelines(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions, logins)
		watch := &traffic{}
		s.redis.AddHook(watch)
		var list []event
		for i := range 2000 {
			list = append(list, event{
				offset: int64(i), device: "d1", user: fmt.Sprint(i, strings.Repeat("u", 200)), time: 100*day + int64(i), cents: 1,
			})
		}
		b := begin(t, s, transactions, logins)
		fill(b, 0, list...)
		b.Ranges[1].To = 7 // of events without mutations
		b.EveryShard = true
		apply(t, s.newWriter(), b)
		for i, want := range []int64{2000, 7} {
			if got := b.Ranges[i].Progress[0]; got.Offset != want {
				t.Errorf("the progress of range %v is %v, want %d", i, got, want)
			}
		}
		checkHot(t, s, list)
		if most := (maxPassBytes + 2*maxCallBytes) / maxCallBytes; watch.widest < 1 || watch.widest > most {
			t.Errorf("a pipeline had %d calls of %d bytes, want 1 to %d", watch.widest, maxCallBytes, most)
		}
	})
}

// Damage is reported once a minute, and not with every batch that appends to the key. It is still noticed after
// appends.
func TestDamageIsReportedOnceAMinute(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w, offset, refused := s.newWriter(), int64(0), 0
		s.redis.Set(t.Context(), deviceKey(s, "d1"), strings.Repeat("\xff", 100_000), 0)
		write := func(n int) {
			for range n {
				b := countOf(t, s, offset, 100*day, slices.Repeat([]string{"d1"}, 40)...)
				for i := range int64(40) {
					b.Update(0, offset+i, []byte("d1"))
					b.Add(state.Mutation{Series: users, Tile: 100, Text: &state.Text{Member: fmt.Appendf(nil, "u%d", offset+i)}})
				}
				offset += 40
				apply(t, w, b)
				refused += b.Refused
			}
		}
		write(20)
		size := s.redis.StrLen(t.Context(), deviceKey(s, "d1")).Val()
		if refused != 1 || size > 20_000 {
			t.Errorf("the damage was reported %d times, want once; the key has %d bytes", refused, size)
		}
		for key := range w.reported {
			w.reported[key] = 0 // the minute is over
		}
		write(60)
		if refused != 2 {
			t.Errorf("the damage was reported %d times, want twice", refused)
		}
	})
}

// replacements notes the keys and the bytes of each call that replaces content, by pipeline.
type replacements struct {
	sha       string
	pipelines [][]replacedBy
}

type replacedBy struct{ keys, bytes int }

func (*replacements) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*replacements) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (r *replacements) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var calls []replacedBy
		for _, c := range cmds {
			if args := c.Args(); len(args) > 2 && args[1] == any(r.sha) {
				by := replacedBy{keys: args[2].(int) - 1} // the last one is the shard's progress
				for _, arg := range args {
					by.bytes += len(textOf(arg))
				}
				calls = append(calls, by)
			}
		}
		if len(calls) > 0 {
			r.pipelines = append(r.pipelines, calls)
		}
		return next(ctx, cmds)
	}
}

// All keys of a shard may be candidates at once. No call replaces many of them, or many bytes, because Redis serves no
// other client meanwhile. One pipeline has all calls.
func TestKeysAreReplacedByManyCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ user, most int }{"many keys": {1, maxReplacedKeys}, "long keys": {1000, maxReplacedKeys / 2}} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				const devices = 200
				start(t, s, transactions)
				watch := &replacements{sha: s.compact.Hash()}
				s.redis.AddHook(watch)
				w, events := s.newWriter(), 0
				for ; len(watch.pipelines) == 0; events++ {
					b := begin(t, s, transactions)
					for i := range devices {
						user := fmt.Sprint(events, strings.Repeat("u", test.user))
						fill(b, 0, event{offset: int64(events*devices + i), device: fmt.Sprint("d", i), user: user, time: 100 * day, cents: 1})
					}
					apply(t, w, b)
				}
				replaced := 0
				for _, call := range watch.pipelines[0] {
					replaced += call.keys
					if call.keys > test.most || call.bytes > maxReplacedBytes+16<<10 {
						t.Errorf("one call replaces %d bytes of %d keys", call.bytes, call.keys)
					}
				}
				if replaced < devices || len(watch.pipelines) > 1 {
					t.Errorf("%d pipelines replace %d of %d keys", len(watch.pipelines), replaced, devices)
				}
				for _, device := range []string{"d0", "d100", "d199"} {
					if got := holds(t, s, device, 100, 100); !strings.HasPrefix(got, fmt.Sprintf("100=%d ", events)) {
						t.Errorf("after %d events %s holds %s", events, device, got)
					}
				}
			})
		})
	}
}

// One call replaces keys of one shard, within the bounds. A key and the children that it spills are in the same call.
func TestReplacedTogether(t *testing.T) {
	t.Parallel()
	key := func(shard, held, packed, children int) (c compacted) {
		c.shard, c.held, c.packed = shard, make([]byte, held), make([]byte, packed)
		for range children {
			c.spilled = append(c.spilled, spill{sections: make([]byte, 1000)})
		}
		return c
	}
	for name, test := range map[string]struct {
		list []compacted
		want int
	}{
		"one key":                           {[]compacted{key(0, 10, 5, 0)}, 1},
		"a key of another shard":            {[]compacted{key(0, 10, 5, 0), key(0, 10, 5, 0), key(1, 10, 5, 0)}, 2},
		"many keys":                         {slices.Repeat([]compacted{key(0, 10, 5, 0)}, 100), maxReplacedKeys},
		"many children":                     {slices.Repeat([]compacted{key(0, 10, 5, 31)}, 9), 2},
		"very many children of one":         {slices.Repeat([]compacted{key(0, 10, 5, 100)}, 9), 1},
		"long keys":                         {slices.Repeat([]compacted{key(0, 20<<10, 12<<10, 0)}, 9), 4},
		"long keys of which little is left": {slices.Repeat([]compacted{key(0, 40<<10, 0, 0)}, 9), 3},
		"children that take many bytes":     {slices.Repeat([]compacted{key(0, 0, 40<<10, 20)}, 9), 2},
		"a key that is too long":            {[]compacted{key(0, 900<<10, 400<<10, 0), key(0, 10, 5, 0)}, 1},
	} {
		if got := together(test.list); got != test.want {
			t.Errorf("%s: one call replaces %d of %d, want %d", name, got, len(test.list), test.want)
		}
	}
}
