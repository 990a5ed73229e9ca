package redisstore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// tend lets a writer compact its candidates: one batch compacts them, the next one replaces them.
func tend(t *testing.T, s *Store, w *writer) (refused int, refusal, key string) {
	for range 2 {
		b := begin(t, s, transactions)
		b.Series, b.EveryShard = allSeries, true
		apply(t, w, b)
		if refused += b.Refused; refusal == "" {
			refusal, key = b.Refusal, b.RefusedKey
		}
	}
	return refused, refusal, key
}

// A compaction drops state that is no longer kept, and only that. Keys do not grow without bound, and their time to
// live is only extended.
func TestCompactionPrunes(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		w := s.newWriter()
		key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))
		most := int64(0)
		for i := range int64(400) {
			b := begin(t, s, transactions)
			fill(b, 0, event{offset: i, device: "d1", user: fmt.Sprint("u", i%40), time: (100 + i) * day, cents: i})
			apply(t, w, b)
			most = max(most, s.redis.StrLen(ctx, key).Val())
		}
		if most > 1500 {
			t.Errorf("the state took %d bytes, where 9 days of it take about 400", most)
		}
		got := holds(t, s, "d1", 492, 499)
		if !strings.HasPrefix(got, "492=1 493=1 494=1 495=1 496=1 497=1 498=1 499=1 ") {
			t.Errorf("unexpected tiles:\n%s", got)
		}
		if ttl := s.redis.TTL(ctx, key).Val(); ttl < 9*24*time.Hour || ttl > 11*24*time.Hour {
			t.Errorf("%s expires after %v, want a little more than 9 days", key, ttl)
		}
		if ttl := s.redis.TTL(ctx, string(keyspace.AppendKey(nil, s.tags[0], ever.Group, []byte("d1")))).Val(); ttl != -1 {
			t.Errorf("a key that is kept forever expires after %v", ttl)
		}
	})
}

// Series that the definitions no longer have stay as written.
func TestCompactionKeepsUnknownSeries(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		w := s.newWriter()
		list := randomEvents(rand.New(rand.NewPCG(3, 4)), 200)
		for i, e := range list {
			b := begin(t, s, transactions)
			fill(b, 0, e)
			b.Series = allSeries[i/100*5:]
			apply(t, w, b)
		}
		checkAll(t, s, list)
	})
}

// applyTwenty applies 20 events of a device, from an offset on, so that its key is compacted, with definitions of one series.
func applyTwenty(t *testing.T, s *Store, w *writer, from int64) {
	t.Helper()
	for offset := from; offset < from+20; offset++ {
		b := begin(t, s, transactions)
		fill(b, 0, event{device: "d1", user: "u1", time: 101 * day, cents: 5, offset: offset})
		b.Series = []*state.Series{events}
		apply(t, w, b)
	}
}

// Series that have not been used for long are dropped; series in recent use, and unknown ones, stay.
func TestCompactionDropsGarbage(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		register := func(version string, series *state.Series, ago time.Duration) {
			p := &state.Plan{Version: version, Retained: map[string]state.Retention{series.ID + ".x": {}}}
			if _, err := s.Register(ctx, state.Registration{Plan: p, At: time.Now().Add(-ago)}); err != nil {
				t.Fatal(err)
			}
		}
		register("old", amount, 25*time.Hour)
		register("lately", weight, 23*time.Hour)
		w := s.newWriter()
		applyTwenty(t, s, w, 0)
		numbers := func() (list []int) {
			windowStates, err := s.Read(ctx, []state.Read{
				{Series: events, Entity: "d1", First: 101, Last: 101}, {Series: amount, Entity: "d1", First: 101, Last: 101},
				{Series: weight, Entity: "d1", First: 101, Last: 101}, {Series: smallest, Entity: "d1", First: 101, Last: 101},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, windowState := range windowStates {
				n := 0
				for _, b := range windowState.Buckets {
					n += int(b.Value.Num) + int(b.Value.Flt*4)
				}
				list = append(list, n)
			}
			return list
		}
		if got := numbers(); got[0] != 20 || got[1] > 10*5 || got[2] != 20*5 || got[3] != 5 {
			t.Errorf("the counts are %v, want 20, fewer than the 100 of garbage, 100 and 5", got)
		}
		// Series that come back into use stay from then on.
		unused := numbers()[1]
		register("again", amount, 0)
		applyTwenty(t, s, w, 20)
		if got := numbers(); got[1] != unused+20*5 {
			t.Errorf("the series that came back into use has %d, want %d", got[1], unused+20*5)
		}
	})
}

// Garbage in embedded children is dropped, too, also if it is the only garbage of the key.
func TestCompactionDropsGarbageOfChildren(t *testing.T) {
	t.Parallel()
	unused := &state.Series{ID: "unuse", Group: "pairs", Parent: "devic", By: []string{"device", "user"}, Measure: state.CountEvents,
		Tile: day, Keep: 20 * day, GroupKeep: 21 * day, ParentKeep: 21 * day}
	for name, test := range map[string]struct {
		garbage *state.Series
		series  []*state.Series // the definitions
	}{
		"in a known group":    {unused, []*state.Series{pairs, beside}},
		"in an unknown group": {others, []*state.Series{beside}},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				start(t, s, transactions)
				old := &state.Plan{Version: "old", Retained: map[string]state.Retention{test.garbage.ID + ".x": {}}}
				if _, err := s.Register(t.Context(), state.Registration{Plan: old, At: time.Now().Add(-25 * time.Hour)}); err != nil {
					t.Fatal(err)
				}
				const n = 20
				w := s.newWriter()
				for offset := range int64(n) {
					b := begin(t, s, transactions)
					b.Series, b.Now = test.series, 100*day
					b.Update(0, offset, []byte("d1"))
					b.Add(state.Mutation{Series: beside, Tile: 100, Num: 1})
					b.Update(0, offset, []byte("d1|u1"))
					b.Add(state.Mutation{Series: test.garbage, Tile: 100, Num: 1})
					b.Ranges[0].To = offset + 1
					apply(t, w, b)
				}
				if kept, left := count(t, s, beside, "d1"), count(t, s, test.garbage, "d1|u1"); kept != n || left > n/2 {
					t.Errorf("the used series counts %d, want %d; garbage counts %d, want less than half", kept, n, left)
				}
			})
		})
	}
}

// In a copy of the namespace that is older than a day, no plan has been used for that long. State of a plan that has a
// partition still stays: its processors may not have registered yet, or cannot.
func TestCompactionInAStaleCopy(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		live := &state.Plan{Version: "live", Retained: map[string]state.Retention{amount.ID + ".x": {}}}
		if _, err := s.Register(t.Context(), state.Registration{Plan: live, At: time.Now().Add(-25 * time.Hour)}); err != nil {
			t.Fatal(err)
		}
		other := state.Partition{Topic: transactions.Topic, ID: 9}
		if _, err := s.Place(t.Context(), testkit.FirstPlacement(other.WithPlan("live"), 1, 0)); err != nil {
			t.Fatal(err)
		}
		w := s.newWriter()
		applyTwenty(t, s, w, 0)
		read, err := s.Read(t.Context(), []state.Read{{Series: amount, Entity: "d1", First: 101, Last: 101}})
		if err != nil {
			t.Fatal(err)
		}
		if got := read[0].Buckets; len(got) != 1 || got[0].Value.Num != 20*5 {
			t.Errorf("a series that is still applied has %v, want 100", got)
		}
	})
}

// unlisted fails commands that list when plans were used, while on.
type unlisted struct {
	key string
	on  bool
}

var errUnlisted error = answer("the list is lost")

// answer is an error that a server answers with.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func (*unlisted) DialHook(next redis.DialHook) redis.DialHook { return next }

func (u *unlisted) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if u.on && cmd.Name() == "hgetall" && cmd.Args()[1] == u.key {
			cmd.SetErr(errUnlisted)
			return errUnlisted
		}
		return next(ctx, cmd)
	}
}

func (*unlisted) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// If garbage cannot be listed, the keys that were read are compacted later.
func TestCompactionAfterGarbageCouldNotBeListed(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		list := &unlisted{key: usedKey(s.namespace), on: true}
		s.redis.AddHook(list)
		key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))
		w := s.newWriter()
		event := event{device: "d1", user: "u1", time: 101 * day, cents: 5}
		write := func() error {
			b := begin(t, s, transactions)
			fill(b, 0, event)
			b.Series = []*state.Series{events} // so that the others may be garbage
			event.offset++
			return w.Apply(ctx, b)
		}
		var err error
		for err == nil && event.offset < 20 {
			err = write()
		}
		if want := "read when plans were used: the list is lost"; err == nil || err.Error() != want {
			t.Fatalf("error %v, want %s", err, want)
		}
		list.on = false
		for length := int64(0); ; {
			before := length
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if length = s.redis.StrLen(ctx, key).Val(); length < before {
				return
			}
			if event.offset > 100 {
				t.Fatalf("the state was not compacted: it takes %d bytes", length)
			}
		}
	})
}

// A key that a compaction leaves empty is deleted if it has no time to live. Otherwise it stays,
// empty, with that time: writers rely on it.
func TestCompactionThatLeavesNothing(t *testing.T) {
	t.Parallel()
	for name, lives := range map[string]time.Duration{"forever": 0, "for a while": 100 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 1, func(t *testing.T, s *Store) {
				key, content := deviceKey(s, "d1"), strings.Repeat("x", 300)
				s.redis.Set(t.Context(), key, content, lives)
				reply, err := s.redis.Eval(t.Context(), compactLua, []string{key, keyspace.ProgressKey(s.tags[0])}, replacing([]byte(content), nil)...).Int64Slice()
				if err != nil || len(reply) != 1 || reply[0] != 1 {
					t.Fatal(reply, err)
				}
				exists, left := s.redis.Exists(t.Context(), key).Val(), s.redis.TTL(t.Context(), key).Val()
				if lives == 0 && exists != 0 || lives > 0 && (exists != 1 || left > lives || left < lives-time.Hour) {
					t.Errorf("there are %d keys, with a time to live of %v", exists, left)
				}
				if length := s.redis.StrLen(t.Context(), key).Val(); length != 0 {
					t.Errorf("the key has %d bytes, want none", length)
				}
			})
		})
	}
}

// replacing are arguments of the script that replaces the content of a key without children.
func replacing(held, by []byte) []any {
	header, from, rest := proof(held)
	return []any{1, len(held), header, from, rest, by, 0}
}

// A compaction after another one, or after the store went back in time, changes nothing; what was
// appended meanwhile stays.
func TestCompactionIsTooLate(t *testing.T) {
	t.Parallel()
	t.Run("of a short state", func(t *testing.T) { compactTooLate(t, 0, 3, "") })
	t.Run("of a long state", func(t *testing.T) { compactTooLate(t, 0, 30, "") })
	t.Run("of state that has grown little since the last one", func(t *testing.T) { compactTooLate(t, 20, 3, "") })
	t.Run("of state that has grown much since the last one", func(t *testing.T) { compactTooLate(t, 20, 30, "") })
	// The script does not read these as a whole.
	long := strings.Repeat("u", 500)
	t.Run("of a long key", func(t *testing.T) { compactTooLate(t, 0, 30, long) })
	t.Run("of a long key that was compacted before", func(t *testing.T) { compactTooLate(t, 20, 30, long) })
}

// compactTooLate compacts what a number of events have left, after some that were compacted before. The names of
// users begin with a text.
func compactTooLate(t *testing.T, earlier, more int, user string) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		list := randomEvents(rand.New(rand.NewPCG(5, 6)), 60)
		for i := range list {
			list[i].device, list[i].user = "d1", user+list[i].user
		}
		key := string(keyspace.AppendKey(nil, s.tags[0], events.Group, []byte("d1")))
		writer := func() *writer { // one that compacts when the test says so
			w := s.newWriter()
			w.candidates = []candidate{{0, key, []byte(s.redis.Get(ctx, key).Val())}}
			w.learn(allSeries)
			return w
		}
		write := func(list []event) {
			b := begin(t, s, transactions)
			fill(b, 0, list...)
			w := s.newWriter()
			apply(t, w, b)
		}
		if earlier > 0 {
			write(list[:earlier])
			tend(t, s, writer())
		}
		before := earlier + more
		write(list[earlier:before])
		held, err := s.redis.Get(ctx, key).Bytes()
		if err != nil {
			t.Fatal(err)
		}
		header, from, _ := proof(held)
		const whole = 4096 // as in compact.lua
		if few := more < 10; few != (len(held)-from <= maxVerbatim) || (header == nil) != (earlier == 0) || (user != "") != (len(held) > whole) {
			t.Fatalf("%d events have left %d bytes, of which %d were compacted", before, len(held), from)
		}
		stale, err := writer().compactKey(t.Context(), candidate{0, key, held}, 0)
		if err != nil {
			t.Fatal(err)
		}
		replace := func() int64 {
			reply, err := s.redis.Eval(ctx, compactLua, []string{key, keyspace.ProgressKey(s.tags[0])}, replacing(held, stale.packed)...).Int64Slice()
			if err != nil || len(reply) != 1 {
				t.Fatal(reply, err)
			}
			return reply[0]
		}
		tend(t, s, writer())
		if n := replace(); n != 0 {
			t.Error("a late compaction was applied")
		}
		s.redis.Set(ctx, key, string(held[:len(held)-1])+"?", 0)
		if n := replace(); n != 0 {
			t.Error("changed content was compacted")
		}
		s.redis.Set(ctx, key, "\x00\x01"+string(held[2:]), 0)
		if n := replace(); n != 0 {
			t.Error("content with another beginning was compacted")
		}
		s.redis.Set(ctx, key, held, 0)
		write(list[before:])
		if n := replace(); n != 1 {
			t.Error("content that only grew was not compacted")
		}
		if got, want := holds(t, s, "d1", 100, 106), expected(list, "d1", 100, 106); got != want {
			t.Errorf("after it:\n%s\nwant\n%s", got, want)
		}
	})
}

// Of one registry, series may be replaced by as many generations while the first series stays.
func TestCompactorLearnsReplacedSeries(t *testing.T) {
	t.Parallel()
	var c compactor
	generation := *users
	generation.ID = "later"
	c.learn([]*state.Series{events, users})
	c.learn([]*state.Series{events, &generation})
	if g := c.group(events.Group); g.known(generation.Tag()) != &generation || g.known(users.Tag()) != nil {
		t.Error("the compactor knows the series that was replaced, want the one that replaces it")
	}
}
