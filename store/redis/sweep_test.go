package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

// Users are counted for ever and by the day in one key, in which what is kept of their devices
// is embedded: a count, and a mean, which must be folded with all there was before.
var (
	userEver  = &state.Series{ID: "uever", Group: "user", By: []string{"user"}, Measure: state.CountEvents}
	userDays  = &state.Series{ID: "udays", Group: "user", By: []string{"user"}, Measure: state.CountEvents, Tile: day, Keep: 2 * day}
	pairDays  = &state.Series{ID: "pdays", Group: "pair", Parent: "user", By: []string{"user", "device"}, Measure: state.CountEvents, Tile: day, Keep: 2 * day, GroupKeep: 3 * day}
	pairMean  = &state.Series{ID: "pmean", Group: "pair", Parent: "user", By: []string{"user", "device"}, Measure: state.ValueMoments, Type: value.Float, Tile: day, Keep: 2 * day, GroupKeep: 3 * day}
	cardDays  = &state.Series{ID: "cdays", Group: "card", By: []string{"card"}, Measure: state.CountEvents, Tile: day, Keep: 2 * day, GroupKeep: 3 * day}
	sweptOnes = []*state.Series{userEver, userDays, pairDays, pairMean, cardDays}
)

// planKeeping keeps series.
func planKeeping(version string, series ...*state.Series) *state.Plan {
	p := &state.Plan{Version: version, Retained: map[string]state.Retention{}}
	for _, s := range series {
		p.Retained[s.ID] = state.Retention{Keep: s.Keep}
	}
	return p
}

// sweeping is a namespace of users who come and go.
type sweeping struct {
	*testing.T
	store  *Store
	writer *writer
	now    time.Time // of who sweeps
}

func newSweeping(t *testing.T, s *Store) *sweeping {
	start(t, s, transactions)
	w := &sweeping{T: t, store: s, writer: s.newWriter(), now: time.Now()}
	s.masters.now = func() time.Time { return w.now }
	return w
}

// sweeper sweeps keys however short they were idle.
func (w *sweeping) sweeper(p *state.Plan, series []*state.Series) *sweeper {
	sweeper := w.store.newSweeper(p, series)
	sweeper.longest = 0
	return sweeper
}

// pay applies a payment of each user with a device, on a day.
func (w *sweeping) pay(at int64, users ...string) {
	w.Helper()
	b := begin(w, w.store, transactions)
	b.Series, b.Now, b.EveryShard = sweptOnes, at*day, true
	from := b.Ranges[0].To
	for i, user := range users {
		w.payment(b, from+int64(i), at, user)
	}
	b.Ranges[0].To = from + int64(len(users))
	apply(w, w.writer, b)
}

func (w *sweeping) payment(b *state.Batch, offset, at int64, user string) {
	b.Update(0, offset, []byte(user))
	b.Add(state.Mutation{Series: userEver, Num: 1})
	b.Add(state.Mutation{Series: userDays, Tile: at, Num: 1})
	b.Update(0, offset, []byte(user+"|d"))
	b.Add(state.Mutation{Series: pairDays, Tile: at, Num: 1})
	b.Add(state.Mutation{Series: pairMean, Tile: at, Num: 4})
}

func (w *sweeping) key(user string) string {
	return string(w.store.AppendKey(nil, userEver, user))
}

func (w *sweeping) held(user string) string { return w.store.redis.Get(w.Context(), w.key(user)).Val() }

// round takes as many steps as a walk through all keys has, a second each, and begins the next one.
func (w *sweeping) round(s *sweeper) {
	w.now = w.now.Add(sweepRoundUnknown)
	for range 20 {
		w.now = w.now.Add(time.Second)
		s.step(w.Context())
	}
}

// counts are what is held of a user for ever, and in a stretch of days of him and of his device.
func (w *sweeping) counts(user string, from, to int64) string {
	w.Helper()
	slices, err := w.store.Read(w.Context(), []state.Read{
		{Series: userEver, Entity: user}, {Series: userDays, Entity: user, First: from, Last: to},
		{Series: pairDays, Entity: user + "|d", First: from, Last: to},
	})
	if err != nil {
		w.Fatal(err)
	}
	var counts [3]int64
	for i := range slices {
		if slices[i].Err != nil {
			w.Error(slices[i].Err)
		}
		for _, b := range slices[i].Buckets {
			counts[i] += b.Value.Num
		}
	}
	return strings.Trim(fmt.Sprint(counts), "[]")
}

func (w *sweeping) wantCounts(user string, from, to int64, want string) {
	w.Helper()
	if got := w.counts(user, from, to); got != want {
		w.Errorf("of %s there are %s, want %s", user, got, want)
	}
}

// What is kept of a user who comes no more is what is kept for ever, on each kind of server;
// what is still kept of others stays.
func TestSweepLeavesWhatIsKept(t *testing.T) {
	onEach(t, 4, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		var gone []string
		for i := range 30 {
			gone = append(gone, fmt.Sprint("gone", i))
		}
		for range 3 {
			w.pay(100, gone...)
		}
		w.pay(110, "here")
		before := len(w.held("gone7"))
		w.round(w.sweeper(planKeeping("p", sweptOnes...), sweptOnes))
		for _, user := range gone {
			w.wantCounts(user, 100, 110, "3 0 0")
		}
		w.wantCounts("here", 100, 110, "1 1 1")
		// A header, and a section of one number.
		if held := w.held("gone7"); len(held) > 16 {
			t.Errorf("%d bytes are left of %d: %x", len(held), before, held)
		}
	})
}

// A key that cannot be made shorter is left as it is.
func TestSweepRewritesNothingInVain(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		w.pay(100, "gone", "here")
		w.pay(110, "here", "other")
		sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
		w.round(sweeper)
		gone, here := w.held("gone"), w.held("here")
		w.round(sweeper)
		if again := w.held("gone"); again != gone || len(gone) == 0 {
			t.Errorf("what was swept was written anew: %x, it was %x", again, gone)
		}
		if again := w.held("here"); again != here || len(here) == 0 {
			t.Errorf("what is all kept was written anew: %x, it was %x", again, here)
		}
		if len(sweeper.noted) != 0 {
			t.Errorf("%d keys are still noted", len(sweeper.noted))
		}
	})
}

// What events bring while a key is swept is not lost, and nothing counts twice.
func TestSweepBesideEvents(t *testing.T) {
	onEach(t, 2, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		users := []string{"a", "b", "c", "d"}
		w.pay(100, users...)
		const rounds = 60
		ctx, cancel := context.WithCancel(t.Context())
		var sweeps sync.WaitGroup
		sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
		swept := 0
		at := w.now
		s.masters.now = func() time.Time { return at }
		sweeps.Go(func() {
			for ; ctx.Err() == nil; swept++ {
				at = at.Add(sweepRoundUnknown)
				sweeper.step(ctx)
			}
		})
		for i := range int64(rounds) {
			w.pay(110+i/10, users...)
		}
		cancel()
		sweeps.Wait()
		for _, user := range users {
			w.wantCounts(user, 114, 115, "61 20 20")
		}
		if swept == 0 {
			t.Error("nothing was swept")
		}
	})
}

// Between what was read and what takes its place, an event comes.
func TestSweepKeepsWhatCameMeanwhile(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		w.pay(100, "a")
		w.pay(110, "b")
		sweeper, key := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes), w.key("a")
		before := w.held("a")
		sweeper.addCandidate(0, key, before)
		w.pay(110, "a")
		sweeper.shorten(t.Context())
		w.wantCounts("a", 100, 110, "2 1 1")
		if held := w.held("a"); len(held) >= 2*len(before) {
			t.Errorf("nothing was swept: %d bytes of %d", len(held), 2*len(before))
		}
	})
}

// One processor of a namespace sweeps at a time, and another one when it is gone.
func TestSweepsTakeTurns(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		first, second := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes), New(s.redis, s.namespace, 1).newSweeper(planKeeping("p", sweptOnes...), sweptOnes)
		second.store.masters.now = s.masters.now
		turns := func() string { return fmt.Sprint(first.elected(t.Context()), second.elected(t.Context())) }
		for range 5 {
			if got := turns(); got != "true false" {
				t.Fatalf("these sweep: %s", got)
			}
			w.now = w.now.Add(sweepLease / 3)
		}
		if left := s.redis.TTL(t.Context(), sweepKey(s.namespace)).Val(); left <= 0 || left > sweepLease {
			t.Errorf("one sweeps for %v", left)
		}
		s.redis.Del(t.Context(), sweepKey(s.namespace)) // as it is gone when it is over
		if !second.elected(t.Context()) || first.elected(t.Context()) {
			t.Error("the second one does not sweep when the first one's time is over")
		}
	})
}

// Where nothing lives for ever that forgets, nobody sweeps, and nothing is asked for.
func TestSweepsOnlyWhereItIsNeeded(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	s := newStore(t, server.Client(t), 2)
	w := newSweeping(t, s)
	lifetimes := []*state.Series{userEver, cardDays}
	for _, p := range []*state.Plan{planKeeping("long", userEver, cardDays)} {
		if err := s.notePlan(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	w.round(w.sweeper(planKeeping("now", lifetimes...), lifetimes))
	if stats := s.redis.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_scan:") {
		t.Errorf("keys were looked for: %s", stats)
	}
	w.round(w.sweeper(planKeeping("now", sweptOnes...), sweptOnes))
	if stats := s.redis.Info(t.Context(), "commandstats").Val(); !strings.Contains(stats, "cmdstat_scan:") {
		t.Error("no keys were looked for where there may be some")
	}
}

// What a plan of the past has left for ever goes when nobody has wanted it for a day: a
// lifetime that no definitions have any more, and what its key held besides.
func TestSweepDropsWhatDefinitionsLeft(t *testing.T) {
	days := *userDays
	days.GroupKeep = 3 * day
	present := []*state.Series{&days, cardDays}
	for name, test := range map[string]struct {
		unused          time.Duration // what the past has kept
		gone, here, old string        // numbers, or bytes of a key
	}{
		"of late":   {garbageAfter - time.Hour, "3 0 3", "3 3 3", "kept"},
		"for a day": {garbageAfter + time.Hour, "0 0 0", "0 3 0", "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			onEach(t, 2, func(t *testing.T, s *Store) {
				w := newSweeping(t, s)
				for _, p := range []state.Registration{
					{Plan: planKeeping("before", sweptOnes...), At: time.Now().Add(-test.unused)}, {Plan: planKeeping("now", present...)},
				} {
					p.Begins = true
					if _, err := s.Register(t.Context(), p); err != nil {
						t.Fatal(err)
					}
				}
				for range 3 {
					w.pay(100, "gone")
				}
				for range 3 {
					w.pay(110, "here")
				}
				if left := s.redis.TTL(t.Context(), w.key("gone")).Val(); left != -1 {
					t.Fatalf("it lives for %v", left)
				}
				w.round(w.sweeper(planKeeping("now", present...), present))
				if got := w.counts("gone", 100, 110); got != test.gone {
					t.Errorf("of who is gone there are %s, want %s", got, test.gone)
				}
				if got := w.counts("here", 100, 110); got != test.here {
					t.Errorf("of who is here there are %s, want %s", got, test.here)
				}
				if n := s.redis.Exists(t.Context(), w.key("gone")).Val(); (n == 0) != (test.old == "gone") {
					t.Errorf("there are %d keys of who is gone, want it %s", n, test.old)
				}
			})
		})
	}
}

// While definitions are replaced, what those that are still applied keep is left alone.
func TestSweepWaitsForPlansThatKeepMore(t *testing.T) {
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		longer := *userDays
		longer.Keep = 20 * day
		for _, p := range []*state.Plan{planKeeping("longer", userEver, &longer), planKeeping("p", sweptOnes...)} {
			if _, err := s.Register(t.Context(), state.Registration{Plan: p, Begins: true}); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			w.pay(100, "gone")
		}
		w.pay(110, "here")
		sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
		for _, step := range [][2]string{{"longer", "3 3 3"}, {"p", "3 0 0"}} {
			if _, err := s.Claim(t.Context(), []state.Partition{transactions}, step[0]); err != nil {
				t.Fatal(err)
			}
			w.round(sweeper)
			w.wantCounts("gone", 100, 110, step[1])
		}
	})
}

// Keys are read that were idle for as long as their series are kept, and no others. A walk
// is over in a round, and the next one begins an hour after it.
func TestSweepReadsIdleKeysOnly(t *testing.T) {
	for name, connect := range servers {
		if name == "miniredis" { // it cannot be told for how long a key was idle
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := newStore(t, connect(t), 4)
			w := newSweeping(t, s)
			users := []string{"a", "b", "c", "d", "e", "f"}
			w.pay(100, users...)
			w.pay(200, "now")
			kept := time.Duration(keyspace.Lifetime(3*day, s.slack)) * time.Second
			rest := func(user string, idle time.Duration) {
				t.Helper()
				args := []any{"restore", w.key(user), 0, s.redis.Dump(t.Context(), w.key(user)).Val(), "replace", "idletime", int64(idle / time.Second)}
				if err := s.redis.Do(t.Context(), args...).Err(); err != nil {
					t.Fatal(err)
				}
			}
			for _, user := range users[:3] {
				rest(user, kept)
			}
			for _, user := range users[3:] {
				rest(user, kept-time.Minute)
			}
			sweeper := s.newSweeper(planKeeping("p", sweptOnes...), sweptOnes)
			short := func() (swept string) {
				for range 20 {
					w.now = w.now.Add(time.Second)
					sweeper.step(t.Context())
				}
				for _, user := range users {
					idle := redis.NewIntCmd(t.Context(), "object", "idletime", w.key(user))
					idle.SetFirstKeyPos(2)
					_ = s.redis.Process(t.Context(), idle)
					if read := idle.Val() < 3600; read {
						swept += user
					}
				}
				return swept
			}
			if got := short(); got != "abc" {
				t.Errorf("read were %q, want those of 3 users", got)
			}
			rest("d", kept)
			if got := short(); got != "abc" {
				t.Errorf("read were %q before the next round", got)
			}
			w.now = w.now.Add(sweepRound)
			if got := short(); got != "abcd" {
				t.Errorf("read were %q in the next round", got)
			}
		})
	}
}

// A server that counts how often keys are used does not say for how long they were idle: each
// is read, once a day.
func TestSweepWithoutIdleTimes(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	s := newStore(t, server.Client(t), 2)
	if err := s.redis.ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lfu").Err(); err != nil {
		t.Fatal(err)
	}
	w := newSweeping(t, s)
	w.pay(100, "a", "b")
	w.pay(110, "now")
	sweeper := s.newSweeper(planKeeping("p", sweptOnes...), sweptOnes)
	gets := func() string {
		for range 5 {
			w.now = w.now.Add(time.Second)
			sweeper.step(t.Context())
		}
		_, calls, _ := strings.Cut(s.redis.Info(t.Context(), "commandstats").Val(), "cmdstat_get:calls=")
		calls, _, _ = strings.Cut(calls, ",")
		return calls
	}
	gets()
	w.wantCounts("a", 100, 110, "1 0 0")
	before := gets() // those of wantCounts are among them
	w.now = w.now.Add(sweepRound)
	sweeper.asked = w.now // so that nobody is asked who sweeps
	if again := gets(); again != before {
		t.Errorf("%s keys were read after an hour, %s before", again, before)
	}
}

// A master that does not answer is passed over.
func TestSweepPassesOverMastersThatAreAway(t *testing.T) {
	client := redistest.NewCluster(t).Client(t)
	s := newStore(t, client, 8)
	w := newSweeping(t, s)
	var users []string
	for i := range 20 {
		users = append(users, fmt.Sprint("gone", i))
	}
	w.pay(100, users...)
	w.pay(110, "here")
	sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
	if !sweeper.needed(t.Context()) || !sweeper.elected(t.Context()) {
		t.Fatal("it does not sweep")
	}
	masters, err := s.masters.all(t.Context(), s.tags)
	if err != nil || len(masters) < 3 {
		t.Fatal(len(masters), err)
	}
	if _, err := s.Clock(t.Context()); err != nil { // it is known, as it is to who has applied anything
		t.Fatal(err)
	}
	away, _ := s.masters.of(t.Context(), s.tags[0])
	away.breaker.failed(fmt.Errorf("it is away")) // and nothing closes the breaker
	for range 20 {
		w.now = w.now.Add(time.Second)
		sweeper.asked = w.now // that key may be at the one that is away
		sweeper.step(t.Context())
	}
	for _, user := range users {
		m, _ := s.masters.of(t.Context(), w.key(user))
		if swept := len(client.Get(t.Context(), w.key(user)).Val()) <= 16; swept == (m == away) {
			t.Errorf("%s, at a master that is away: %v, was swept: %v", user, m == away, swept)
		}
	}
}
