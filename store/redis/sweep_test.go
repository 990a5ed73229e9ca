package redisstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/value"
)

// Users are counted forever and by the day in one key, which also embeds the state of their
// devices: a count, and a mean, which must be merged with everything before.
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
	now    time.Time // of the sweeper
}

func newSweeping(t *testing.T, s *Store) *sweeping {
	start(t, s, transactions)
	w := &sweeping{T: t, store: s, writer: s.newWriter(), now: time.Now()}
	s.masters.now = func() time.Time { return w.now }
	return w
}

// sweeper returns a sweeper that sweeps keys after any idle time.
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
	return string(w.store.appendKey(nil, userEver, user))
}

func (w *sweeping) held(user string) string { return w.store.redis.Get(w.Context(), w.key(user)).Val() }

// round walks through all keys, and begins the next walk.
func (w *sweeping) round(s *sweeper) {
	w.now = w.now.Add(sweepRoundUnknown)
	w.walk(s)
}

// walk takes the steps of a walk through all keys, a second each. It has more steps if other tests have left keys on
// the same server.
func (w *sweeping) walk(s *sweeper) {
	const usual, most = 20, 500
	walking := func() bool {
		for _, at := range s.walks {
			if at.cursor != 0 {
				return true
			}
		}
		return false
	}
	for n := 0; n < usual || n < most && walking(); n++ {
		w.now = w.now.Add(time.Second)
		s.step(w.Context())
	}
}

// counts are the counts of a user forever, and in a range of days of the user and his device.
func (w *sweeping) counts(user string, from, to int64) string {
	w.Helper()
	windowStates, err := w.store.Read(w.Context(), []state.Read{
		{Series: userEver, Entity: user}, {Series: userDays, Entity: user, First: from, Last: to},
		{Series: pairDays, Entity: user + "|d", First: from, Last: to},
	})
	if err != nil {
		w.Fatal(err)
	}
	var counts [3]int64
	for i := range windowStates {
		if windowStates[i].Err != nil {
			w.Error(windowStates[i].Err)
		}
		for _, b := range windowStates[i].Buckets {
			counts[i] += b.Value.Num
		}
	}
	return strings.Trim(fmt.Sprint(counts), "[]")
}

func (w *sweeping) wantCounts(user string, from, to int64, want string) {
	w.Helper()
	if got := w.counts(user, from, to); got != want {
		w.Errorf("%s has the counts %s, want %s", user, got, want)
	}
}

// For a user without further events only state that is kept forever remains, on each kind of server. State of others
// that is still kept stays.
func TestSweepKeepsSeriesInUse(t *testing.T) {
	t.Parallel()
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
			t.Errorf("%d bytes are left of %d, want at most 16: %x", len(held), before, held)
		}
	})
}

// A key that cannot be made shorter is left unchanged.
func TestSweepRewritesOnlyKeysThatShrink(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		w.pay(100, "gone", "here")
		w.pay(110, "here", "other")
		sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
		w.round(sweeper)
		gone, here := w.held("gone"), w.held("here")
		w.round(sweeper)
		if again := w.held("gone"); again != gone || len(gone) == 0 {
			t.Errorf("a key that was swept has changed to %x, want %x", again, gone)
		}
		if again := w.held("here"); again != here || len(here) == 0 {
			t.Errorf("a key that is kept in full has changed to %x, want %x", again, here)
		}
		if len(sweeper.noted) != 0 {
			t.Errorf("%d keys are still noted, want none", len(sweeper.noted))
		}
	})
}

// Events that come while a key is swept are not lost, and nothing counts twice.
func TestSweepBesideEvents(t *testing.T) {
	t.Parallel()
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
			t.Error("nothing was swept, so nothing was tested")
		}
	})
}

// An event arrives between the read and the replacement.
func TestSweepKeepsConcurrentEvents(t *testing.T) {
	t.Parallel()
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
			t.Errorf("nothing was swept: the key has %d bytes, want fewer than %d", len(held), 2*len(before))
		}
	})
}

// State that an earlier plan kept forever is dropped after a day without use: a lifetime that no definitions have any
// more, and the rest of its key.
func TestSweepDropsRemovedSeries(t *testing.T) {
	t.Parallel()
	days := *userDays
	days.GroupKeep = 3 * day
	present := []*state.Series{&days, cardDays}
	for name, test := range map[string]struct {
		unused          time.Duration // what the earlier plan kept
		gone, here, old string        // numbers, or bytes of a key
	}{
		"of late":   {progress.UnusedFor - time.Hour, "3 0 3", "3 3 3", "kept"},
		"for a day": {progress.UnusedFor + time.Hour, "0 0 0", "0 3 0", "gone"},
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
					t.Fatalf("the key expires after %v, want never", left)
				}
				w.round(w.sweeper(planKeeping("now", present...), present))
				if got := w.counts("gone", 100, 110); got != test.gone {
					t.Errorf("the entity gone has the counts %s, want %s", got, test.gone)
				}
				if got := w.counts("here", 100, 110); got != test.here {
					t.Errorf("the entity here has the counts %s, want %s", got, test.here)
				}
				if n := s.redis.Exists(t.Context(), w.key("gone")).Val(); (n == 0) != (test.old == "gone") {
					t.Errorf("the entity gone has %d keys, want its key to be %s", n, test.old)
				}
			})
		})
	}
}

// While definitions are replaced, the state of plans that are still applied is left alone.
func TestSweepWaitsForPlansThatKeepMore(t *testing.T) {
	t.Parallel()
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
			if _, err := s.Claim(t.Context(), []state.Partition{transactions}, state.Claimant{Version: step[0]}); err != nil {
				t.Fatal(err)
			}
			w.round(sweeper)
			w.wantCounts("gone", 100, 110, step[1])
		}
	})
}
