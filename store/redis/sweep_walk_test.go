package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// One processor of a namespace sweeps at a time, and another one after it has ended.
func TestSweepsTakeTurns(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		w := newSweeping(t, s)
		first, second := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes), New(s.redis, s.namespace, 1).newSweeper(planKeeping("p", sweptOnes...), sweptOnes)
		second.store.masters.now = s.masters.now
		turns := func() string { return fmt.Sprint(first.elected(t.Context()), second.elected(t.Context())) }
		for range 5 {
			if got := turns(); got != "true false" {
				t.Fatalf("the two processors are elected: %s, want true false", got)
			}
			w.now = w.now.Add(sweepLease / 3)
		}
		if left := s.redis.TTL(t.Context(), sweepKey(s.namespace)).Val(); left <= 0 || left > sweepLease {
			t.Errorf("the lease expires after %v, want at most %v", left, sweepLease)
		}
		s.redis.Del(t.Context(), sweepKey(s.namespace)) // as if it had expired
		if !second.elected(t.Context()) || first.elected(t.Context()) {
			t.Error("the second processor does not sweep after the lease of the first has expired")
		}
	})
}

// If no key that lives forever has series that forget, no processor sweeps, and no commands are sent.
func TestSweepsOnlyWhereItIsNeeded(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	s := newStore(t, server.Client(t), 2)
	w := newSweeping(t, s)
	lifetimes := []*state.Series{userEver, cardDays}
	if _, err := s.Register(t.Context(), state.Registration{Plan: planKeeping("long", userEver, cardDays), Group: "g"}); err != nil {
		t.Fatal(err)
	}
	s.redis.ConfigResetStat(t.Context()) // the shards have begun
	w.round(w.sweeper(planKeeping("now", lifetimes...), lifetimes))
	if stats := s.redis.Info(t.Context(), "commandstats").Val(); strings.Contains(stats, "cmdstat_scan:") {
		t.Errorf("keys were scanned although none can need a sweep: %s", stats)
	}
	w.round(w.sweeper(planKeeping("now", sweptOnes...), sweptOnes))
	if stats := s.redis.Info(t.Context(), "commandstats").Val(); !strings.Contains(stats, "cmdstat_scan:") {
		t.Error("no keys were scanned although some may need a sweep")
	}
}

// A sweep reads exactly the keys that were idle for as long as their series are kept. A walk takes one round, and the
// next one begins an hour after it.
func TestSweepReadsIdleKeysOnly(t *testing.T) {
	t.Parallel()
	for name, connect := range servers {
		if name == "miniredis" { // it does not support idle times
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
				w.walk(sweeper)
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
				t.Errorf("the keys of the users %q were read, want abc", got)
			}
			rest("d", kept)
			if got := short(); got != "abc" {
				t.Errorf("before the next round the keys of the users %q were read, want abc", got)
			}
			w.now = w.now.Add(sweepRound)
			if got := short(); got != "abcd" {
				t.Errorf("in the next round the keys of the users %q were read, want abcd", got)
			}
		})
	}
}

// A server that counts how often keys are used does not report idle times: each key is read once a
// day.
func TestSweepWithoutIdleTimes(t *testing.T) {
	t.Parallel()
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
	sweeper.asked = w.now // so that the lease is not checked
	if again := gets(); again != before {
		t.Errorf("%s keys were read after an hour, want the %s of before", again, before)
	}
}

// scans counts the steps of walks at a master.
type scans struct{ n int }

func (*scans) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *scans) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "scan" {
			s.n++
		}
		return next(ctx, cmd)
	}
}

func (*scans) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A master that does not answer is skipped: it is not asked for keys, and those that were found stay
// to be read.
func TestSweepSkipsUnavailableMasters(t *testing.T) {
	t.Parallel()
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
		t.Fatal("the processor does not sweep")
	}
	masters, err := s.masters.all(t.Context(), s.tags)
	if err != nil || len(masters) < 3 {
		t.Fatalf("got %d masters, error %v; want at least 3", len(masters), err)
	}
	if _, err := s.Clock(t.Context()); err != nil { // makes it known, as it is after anything was applied
		t.Fatal(err)
	}
	away, _ := s.masters.of(t.Context(), s.tags[0])
	asked := &scans{}
	away.node.AddHook(asked)
	away.breaker.Failed(fmt.Errorf("it is away")) // and nothing closes the breaker
	walk := func() {
		for range 20 {
			w.now = w.now.Add(time.Second)
			sweeper.asked = w.now // the lease may be on the master that is unavailable
			sweeper.step(t.Context())
		}
	}
	walk()
	if asked.n > 0 {
		t.Errorf("an unavailable master was asked for keys %d times, want never", asked.n)
	}
	w.now = w.now.Add(sweepRound)
	sweeper.walks[away].idle = []sweptKey{{group: userEver.Group, key: w.key("gone0")}}
	if walk(); len(sweeper.walks[away].idle) != 1 {
		t.Error("a key that was found at an unavailable master is no longer noted")
	}
	for _, user := range users {
		m, _ := s.masters.of(t.Context(), w.key(user))
		if swept := len(client.Get(t.Context(), w.key(user)).Val()) <= 16; swept == (m == away) {
			t.Errorf("%s, at an unavailable master: %v, was swept: %v, want the opposite", user, m == away, swept)
		}
	}
}

// A sweep continues at the replica that a Sentinel has promoted.
func TestSweepAfterAFailover(t *testing.T) {
	t.Parallel()
	primary := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, primary.Addr())
	sentinel := redistest.NewSentinel(t, "weir", primary, 1)
	client := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "weir", SentinelAddrs: []string{sentinel.Addr()}})
	t.Cleanup(func() { _ = client.Close() })
	s := newStore(t, client, 2)
	w := newSweeping(t, s)
	for range 3 {
		w.pay(100, "early", "late")
	}
	w.pay(110, "here")
	sweeper := w.sweeper(planKeeping("p", sweptOnes...), sweptOnes)
	w.round(sweeper)
	w.wantCounts("early", 100, 110, "3 0 0")
	for range 3 {
		w.pay(111, "late")
	}
	w.pay(120, "here")
	if n, err := client.Wait(t.Context(), 1, time.Minute).Result(); n != 1 || err != nil {
		t.Fatalf("%d replicas have the events, error %v; want 1", n, err)
	}
	primary.Kill()
	testkit.Eventually(t, time.Minute, "the replica is the master", func() (bool, string) {
		master, err := sentinel.Master(t.Context())
		return err == nil && master == replica.Addr(), master
	})
	testkit.Eventually(t, time.Minute, "the sweep of a user", func() (bool, string) {
		if _, err := s.Clock(t.Context()); err != nil {
			return false, err.Error()
		}
		w.round(sweeper)
		length := len(w.held("late"))
		return 0 < length && length <= 16, fmt.Sprintf("the key has %d bytes", length)
	})
	w.wantCounts("late", 100, 120, "6 0 0")
	w.wantCounts("here", 100, 120, "2 1 1")
}
