package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// watched is a namespace whose server deletes state.
type watched struct {
	*testing.T
	*Store
	client redis.UniversalClient
	notes  []ServerNote
	offset int64
}

func newWatched(t *testing.T, client redis.UniversalClient, options ...Option) *watched {
	w := &watched{T: t, client: client}
	note := NoteServers(func(n ServerNote) { w.notes = append(w.notes, n) })
	w.Store = newStore(t, client, 4, append(options, note)...)
	start(t, w.Store, transactions)
	return w
}

// apply applies an event of each device at a moment of event and record time.
func (w *watched) apply(at time.Time, devices ...string) {
	w.Helper()
	b := begin(w.T, w.Store, transactions)
	b.EveryShard = true
	for _, device := range devices {
		fill(b, 0, event{offset: w.offset, device: device, user: strings.Repeat(device, 20), time: at.UnixMilli()})
		w.offset++
	}
	apply(w.T, w.newWriter(), b)
}

// since is the time from which the events of the topic are complete, kept for a time in ms.
func (w *watched) since(now time.Time, keep int64) int64 {
	w.Helper()
	h, err := w.History(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	column := state.Retained{Key: "count", Topic: transactions.Topic, Retention: state.Retention{Keep: keep}}
	h.Plans = map[string]*state.Plan{}
	for _, e := range h.PlanEpochs {
		h.Plans[e.Version] = &state.Plan{Retained: map[string]state.Retention{column.Key: column.Retention}}
	}
	delete(h.Plans, state.Gap)
	return max(h.Remaining(now.UnixMilli()).Since(&state.Series{Keep: keep, Tile: 1}), h.CompleteSince([]state.Retained{column}))
}

// A server that may evict keys is refused, unless that is allowed or it has no limit.
func TestEvictionIsRefused(t *testing.T) {
	t.Parallel()
	const want = "is allkeys-lru: set noeviction, or redis.allow_eviction: true, with which answers are INCOMPLETE once keys are evicted"
	server := redistest.New(t, redistest.Options{Config: map[string]string{"maxmemory-policy": "allkeys-lru"}})
	client := server.Client(t)
	for _, c := range []struct {
		memory  string
		allowed bool
		refused bool
	}{{"0", false, false}, {"100mb", false, true}, {"100mb", true, false}} {
		if err := client.ConfigSet(t.Context(), "maxmemory", c.memory).Err(); err != nil {
			t.Fatal(err)
		}
		s := New(client, testkit.Namespace(t), 4, AllowEviction(c.allowed))
		err := s.CheckEviction(t.Context())
		if c.refused != errors.Is(err, store.ErrEvicts) || c.refused && !strings.HasSuffix(err.Error(), want) || !c.refused && err != nil {
			t.Errorf("maxmemory %s, allowed %v: got %v, want %q: %v", c.memory, c.allowed, err, want, c.refused)
		}
	}
	// While it runs, it is ready, and says so.
	n := NewNamespace(newStore(t, client, 4))
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go n.Watch(ctx)
	testkit.Eventually(t, time.Minute, "the warning", func() (bool, string) {
		err := n.Ready(t.Context())
		part, degraded := errors.AsType[interface {
			error
			Degraded() bool
		}](err)
		return degraded && part.Degraded() && strings.HasSuffix(err.Error(), want), fmt.Sprint(err)
	})
}

// From the first eviction on, the state is complete only since then: at once for who reads the history, and for good once
// a processor has recorded it, also after the server was replaced.
func TestEvictionIsNoticed(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{Config: map[string]string{"maxmemory-policy": "volatile-random"}})
	client := server.Client(t)
	evict := func() {
		t.Helper()
		// All keys with a time to live, of which there are always some.
		if err := client.Set(t.Context(), "other", "x", time.Hour).Err(); err != nil {
			t.Fatal(err)
		}
		for _, limit := range []string{"1", "0"} {
			if err := client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
				t.Fatal(err)
			}
			_ = client.Set(t.Context(), "refused", "x", 0).Err()
		}
	}
	evict() // before the namespace: it has lost nothing
	w := newWatched(t, client, AllowEviction(true))
	_ = w.look(t.Context(), true)
	now := time.Now()
	w.apply(now, "a", "b", "c", "d")
	_ = w.look(t.Context(), true)
	if since := w.since(now, 8*day); since > now.UnixMilli()-8*day {
		t.Errorf("before an eviction, the state is complete since %d ms before now", now.UnixMilli()-since)
	}
	evict()
	if since := w.since(now, 8*day); since != now.UnixMilli()+1 {
		t.Errorf("after an eviction, the state is complete since %d ms before now, want 1 after it", now.UnixMilli()-since)
	}
	w.notes = nil
	_ = w.look(t.Context(), true)
	if len(w.notes) != 1 || w.notes[0].Evicted < 1 {
		t.Errorf("noted %+v, want that keys were evicted", w.notes)
	}
	if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	w.apply(now.Add(time.Second), "a")
	_ = w.look(t.Context(), true)
	if since := w.since(now, 8*day); since != now.UnixMilli()+1 {
		t.Errorf("after the statistics were reset, the state is complete since %d ms before now, want 1 after it", now.UnixMilli()-since)
	}
	// Another server may have evicted keys after it was last asked. This one never did, as after a restart.
	if err := client.ConfigResetStat(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	for _, tag := range w.tags {
		if err := client.HSet(t.Context(), keyspace.ProgressKey(tag), "evicted", "another:5").Err(); err != nil {
			t.Fatal(err)
		}
	}
	w.Store = New(client, w.namespace, 4, NoteServers(func(ServerNote) {}))
	if err := w.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, recorded := range []bool{false, true} {
		_ = w.look(t.Context(), recorded)
		if since := w.since(now, 8*day); since != now.Add(time.Second).UnixMilli()+1 {
			t.Errorf("recorded %v: after a failover, the state is complete since %d ms before now", recorded, now.UnixMilli()-since)
		}
	}
	w.apply(now.Add(2*time.Second), "a")
	if since := w.since(now, 8*day); since != now.Add(time.Second).UnixMilli()+1 {
		t.Errorf("with later events, the state is complete since %d ms before now", now.UnixMilli()-since)
	}
}

// The clock of a server is that of a shard until another one takes it over, whose clock may be another. It may have been
// the server of the shard, or of other shards, before.
func TestServersOfAShardHaveTheirOwnClocks(t *testing.T) {
	t.Parallel()
	const hours3 = 3 * 3600_000
	var w *seenServer
	var noted []string
	start := time.Now()
	at := func(second int, address string, ahead int64) {
		v := &server{address: address, at: start.Add(time.Duration(second) * time.Second)}
		v.Run, v.Clock = address, v.at.UnixMilli()+ahead
		if w == nil {
			w = &seenServer{last: *v}
		}
		w.see(v, func(n ServerNote) { noted = append(noted, fmt.Sprintf("%s %.0fh", n.Address, n.Jump.Hours())) })
	}
	at(0, "a", 0)
	at(10, "a", 9_000)
	if at(20, "b", 0); w.ahead != 0 || noted != nil {
		t.Errorf("two clocks 9s apart: noted %v, ahead until %d", noted, w.ahead)
	}
	at(30, "c", hours3)
	if want := start.Add(30*time.Second).UnixMilli() + hours3; w.ahead != want {
		t.Errorf("with a clock 3h ahead: %d, want %d", w.ahead, want)
	}
	w.ahead = 0 // it is recorded
	at(40, "b", 0)
	if want := start.Add(40*time.Second).UnixMilli() + hours3; w.ahead != want {
		t.Errorf("after a clock 3h ahead: %d, want %d", w.ahead, want)
	}
	if want := []string{"c 3h", "b -3h"}; !slices.Equal(noted, want) {
		t.Errorf("noted %v, want %v", noted, want)
	}
}

// A shard that is read again has all events, though its server has evicted keys before.
func TestShardsBeginAgainAfterEviction(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{Config: map[string]string{"maxmemory-policy": "volatile-random"}})
	client := server.Client(t)
	w := newWatched(t, client, AllowEviction(true))
	now := time.Now()
	w.apply(now, "a", "b", "c", "d")
	for _, limit := range []string{"1", "0"} {
		if err := client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
		_ = client.Set(t.Context(), "refused", "x", 0).Err()
	}
	_ = w.look(t.Context(), true)
	for _, tag := range w.tags {
		if err := client.Del(t.Context(), keyspace.ProgressKey(tag)).Err(); err != nil {
			t.Fatal(err)
		}
	}
	start(t, w.Store, transactions)
	w.offset = 0
	w.apply(now, "a", "b", "c", "d")
	for range 2 {
		if since := w.since(now, 8*day); since > now.UnixMilli()-8*day {
			t.Errorf("after the shards have begun again, the state is complete since %d ms before now", now.UnixMilli()-since)
		}
		_ = w.look(t.Context(), true)
	}
}

// A clock that is set ahead for a while lets keys expire. What they held is missing, and nothing else: not what is kept for
// longer, nor what was applied later.
func TestClockAhead(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{OwnClock: true})
	w := newWatched(t, server.Client(t))
	now := time.Now()
	const hour, days30 = 3600_000, 30 * day
	w.apply(now.Add(-time.Second), "a", "b")
	_ = w.look(t.Context(), true)
	if since := w.since(now, hour); since > now.UnixMilli()-hour {
		t.Errorf("before: complete since %d ms before now", now.UnixMilli()-since)
	}
	server.SetClock(3 * time.Hour)
	during := w.since(now, hour)
	if want := now.UnixMilli() + hour; during < want-2_000 || during > want+60_000 {
		t.Errorf("while the clock is 3h ahead, what is kept for 1h with a slack of 1h is complete since %d ms after now, want 1h", during-now.UnixMilli())
	}
	_ = w.look(t.Context(), true)
	server.SetClock(0)
	_ = w.look(t.Context(), true)
	if got := fmt.Sprint(w.noted()); got != "[3h -3h]" {
		t.Errorf("noted jumps of %s, want [3h -3h]", got)
	}
	// A process that has just started knows it too.
	w.Store = New(w.client, w.namespace, 4)
	if err := w.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if since, want := w.since(now, hour), now.Add(-time.Second).UnixMilli()+1; since != want {
		t.Errorf("afterwards, what is kept for 1h is complete since %d ms before now, want %d", now.UnixMilli()-since, now.UnixMilli()-want)
	}
	if since := w.since(now, days30); since > now.UnixMilli()-days30+3*hour {
		t.Errorf("afterwards, what is kept for 30 days is complete since %d ms before now", now.UnixMilli()-since)
	}
	if err := w.client.HSet(t.Context(), keyspace.ProgressKey(w.tags[0]), "ahead", "x").Err(); err != nil {
		t.Fatal(err)
	}
	const want = `: the field ahead of the progress is "x": not a time in ms`
	if _, err := w.History(t.Context()); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got error %v, want %s", err, want)
	}
}

// A clock that is set back may have been ahead, although nobody saw that begin; and what was applied while it was ahead may
// have joined a key that expired then.
func TestClockAheadIsSeenAtItsEnd(t *testing.T) {
	const hour = 3600_000
	for name, seen := range map[string]bool{"begins unseen": false, "begins in sight": true} {
		t.Run(name, func(t *testing.T) {
			server := redistest.New(t, redistest.Options{OwnClock: true})
			w := newWatched(t, server.Client(t))
			now := time.Now()
			w.apply(now.Add(-time.Minute), "a", "b")
			if seen {
				_ = w.look(t.Context(), true)
			}
			server.SetClock(3 * time.Hour)
			_ = w.look(t.Context(), true)
			w.apply(now.Add(-time.Second), "a")
			server.SetClock(0)
			_ = w.look(t.Context(), true)
			if since, want := w.since(now, hour), now.Add(-time.Second).UnixMilli()+1; since != want {
				t.Errorf("afterwards, what is kept for 1h is complete since %d ms before now, want %d", now.UnixMilli()-since, now.UnixMilli()-want)
			}
		})
	}
}

// noted are the jumps of clocks that were noted, in hours.
func (w *watched) noted() (jumps []string) {
	for n := range slices.Values(w.notes) {
		jumps = append(jumps, fmt.Sprintf("%.0fh", n.Jump.Hours()))
	}
	return jumps
}
