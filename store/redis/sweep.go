package redisstore

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A key of a group that keeps anything forever has no time to live, and is not compacted while nothing is appended. So
// it would keep the outdated state of an entity without further events. A sweep walks slowly through the keys of each
// master, and compacts those that were idle for longer than their series are kept. It also finds keys without a time to
// live that earlier definitions have left.
//
// One processor of a namespace sweeps at a time. If two do for a moment, or another processor
// restarts the walk, that only costs time: a compacted state replaces its original only if that is
// still there.

const (
	// sweepEach is the time between two steps of a walk. In each step a master is asked for about
	// sweepScanned keys or, if it has found some, for the content of sweepRead of them. Either
	// takes about a millisecond of its time.
	sweepEach    = time.Second
	sweepScanned = 500
	sweepRead    = 100
	// sweepBytes is about how much is read in a step: a few keys may be long.
	sweepBytes = 4 << 20
	// sweepRound is the least time of a walk through all keys; sweepRoundUnknown applies if a
	// server does not report how long keys were idle, so that all of them are read.
	sweepRound        = time.Hour
	sweepRoundUnknown = 24 * time.Hour
	// sweepIdle bounds the required idle time of keys, because idle times start over when a server
	// is started, and when a replica replaces its master.
	sweepIdle = 7 * 24 * time.Hour
	// sweepLease is the lease of the sweeping processor; it is extended three times in that period.
	sweepLease = 30 * time.Second
	// sweepPlans is how often the remains of past plans are looked for.
	sweepPlans = time.Hour
)

// sweepKey names the processor that sweeps a namespace.
func sweepKey(namespace string) string { return namespace + ":sweep" }

// sweeper sweeps for a plan. It is not safe for concurrent use.
type sweeper struct {
	*writer
	name    string // unique among processors
	plan    *state.Plan
	series  []*state.Series
	shards  map[string]int           // by tag
	endless map[string]bool          // groups whose keys live forever
	idle    map[string]time.Duration // by group that forgets anything: how long its keys must have been idle
	longest time.Duration            // see sweepIdle
	walks   map[*master]*walk
	asked   time.Time // when the lease was last checked
	leads   bool      // this one has the lease
	looked  time.Time // when remains were last looked for
	left    bool      // past plans may have left keys that live forever
}

// walk is the sweeper's position among the keys of a master.
type walk struct {
	cursor      uint64
	began       time.Time
	idleUnknown bool       // the server does not report how long keys were idle
	idle        []sweptKey // found and not yet read
}

// sweptKey is a key of a group.
type sweptKey struct {
	shard int
	group string
	key   string
}

// Sweep reduces the state of entities without further events to what a plan with these series keeps, until the context
// ends. It ignores errors: they are temporary, or also occur when events are applied.
func (s *Store) Sweep(ctx context.Context, plan *state.Plan, series []*state.Series) {
	w := s.newSweeper(plan, series)
	ticker := time.NewTicker(sweepEach)
	defer ticker.Stop()
	for {
		w.step(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) newSweeper(plan *state.Plan, series []*state.Series) *sweeper {
	w := &sweeper{
		writer: s.newWriter(), name: rand.Text(), plan: plan, series: series, longest: sweepIdle,
		shards: map[string]int{}, endless: map[string]bool{}, idle: map[string]time.Duration{}, walks: map[*master]*walk{},
	}
	w.idleOnly = true
	for shard, tag := range s.tags {
		w.shards[tag] = shard
	}
	for _, series := range series {
		w.note(series.Group, series.GroupKeep, series)
		if series.Parent != "" {
			w.note(series.Parent, series.ParentKeep, series)
		}
	}
	return w
}

// note records that keys of a group, which are kept that many ms, hold a series.
func (w *sweeper) note(group string, keep int64, s *state.Series) {
	w.endless[group] = keep == 0
	if s.Keep > 0 {
		seconds := keyspace.Lifetime(s.Keep+s.Tile, w.store.slack)
		w.idle[group] = max(w.idle[group], time.Duration(seconds)*time.Second)
	}
}

// step goes one step further at each master.
func (w *sweeper) step(ctx context.Context) {
	if !w.needed(ctx) || !w.elected(ctx) {
		return
	}
	masters, err := w.store.masters.all(ctx, w.store.tags)
	if err != nil {
		return
	}
	found := false
	for _, m := range masters {
		if w.walks[m] == nil {
			w.walks[m] = &walk{}
		}
		if m.err() == nil {
			w.scan(ctx, m, w.walks[m])
			found = found || len(w.walks[m].idle) > 0
		}
	}
	if !found || !w.mayPrune(ctx) {
		return
	}
	for _, m := range masters {
		if m.err() == nil {
			w.read(ctx, w.walks[m])
		}
	}
	w.shorten(ctx)
}

// mayPrune reports that no applied plan keeps more of anything than this one. While definitions are being replaced,
// another plan may keep more, which must not be pruned.
func (w *sweeper) mayPrune(ctx context.Context) bool {
	h, err := w.store.History(ctx)
	if err != nil {
		return false
	}
	for _, e := range h.PlanEpochs {
		if e.Last < state.MaxTime || e.Version == "" || e.Version == w.plan.Version {
			continue
		}
		if p := h.Plans[e.Version]; p == nil || w.plan.Shortens(p, e.Topic) {
			return false
		}
	}
	return true
}

// needed reports whether any key may need sweeping: the plan has groups that live forever although they forget
// something, or an earlier plan kept something forever that this one does not.
func (w *sweeper) needed(ctx context.Context) bool {
	if now := w.store.masters.now(); w.looked.IsZero() || now.Sub(w.looked) >= sweepPlans {
		known, err := w.store.Known(ctx)
		if err != nil {
			return false
		}
		w.looked, w.left = now, false
		for _, p := range known.Plans {
			w.left = w.left || p.KeepsForever() && !w.plan.Covers(p)
		}
	}
	if w.left {
		return true
	}
	for group := range w.idle {
		if w.endless[group] {
			return true
		}
	}
	return false
}

// elected reports whether this processor may sweep.
func (w *sweeper) elected(ctx context.Context) bool {
	now := w.store.masters.now()
	if !w.asked.IsZero() && now.Sub(w.asked) < sweepLease/3 {
		return w.leads
	}
	w.asked = now
	key, seconds := sweepKey(w.store.namespace), int64(sweepLease/time.Second)
	set := redis.NewStatusCmd(ctx, "set", key, w.name, "nx", "ex", seconds)
	if w.leads = w.store.sendAbout(ctx, key, set) == nil; w.leads {
		return true
	}
	get := redis.NewStringCmd(ctx, "get", key)
	if w.store.sendAbout(ctx, key, get) == nil && get.Val() == w.name {
		w.leads = w.store.sendAbout(ctx, key, redis.NewIntCmd(ctx, "expire", key, seconds)) == nil
	}
	return w.leads
}

// scan finds the next keys of a master to read, unless there are some already or the round is
// complete.
func (w *sweeper) scan(ctx context.Context, m *master, at *walk) {
	now, round := w.store.masters.now(), sweepRound
	if at.idleUnknown {
		round = sweepRoundUnknown
	}
	if len(at.idle) > 0 || at.cursor == 0 && !at.began.IsZero() && now.Sub(at.began) < round {
		return
	}
	if at.cursor == 0 {
		at.began = now
	}
	bounded, cancel := context.WithTimeout(ctx, w.store.masters.write)
	defer cancel()
	names, cursor, err := m.node.Scan(bounded, at.cursor, keyspace.Pattern(w.store.namespace), sweepScanned).Result()
	if err != nil {
		if unanswered(err) && ctx.Err() == nil {
			m.fail(err)
		}
		return
	}
	at.cursor = cursor
	var endless, others []sweptKey
	for _, name := range names {
		switch k, ok := w.parse(name); {
		case !ok:
		case w.endless[k.group] && (w.left || w.idle[k.group] > 0):
			endless = append(endless, k)
		case !w.endless[k.group] && w.left:
			others = append(others, k)
		}
	}
	at.idle = w.idleOf(ctx, append(endless, w.withoutEnd(ctx, others)...), at)
}

// parse parses the name of a key; false if it holds no state of an entity.
func (w *sweeper) parse(name string) (k sweptKey, ok bool) {
	tag := name[:strings.IndexByte(name, '}')+1]
	k.key = name
	if k.shard, ok = w.shards[tag]; ok {
		k.group, _, ok = strings.Cut(name[len(tag):], ":")
	}
	return k, ok
}

// withoutEnd returns the keys without a time to live.
func (w *sweeper) withoutEnd(ctx context.Context, keys []sweptKey) []sweptKey {
	lives := w.ask(ctx, keys, "ttl")
	return w.those(keys, func(i int) bool { return lives[i].Err() == nil && lives[i].Val() == -1 })
}

// idleOf returns the keys that were idle for long enough; all of them if the server does not report it.
func (w *sweeper) idleOf(ctx context.Context, keys []sweptKey, at *walk) []sweptKey {
	idle := w.ask(ctx, keys, "object", "idletime")
	at.idleUnknown = len(idle) == 0 && at.idleUnknown || slices.ContainsFunc(idle, func(c *redis.IntCmd) bool { return countsUses(c.Err()) })
	return w.those(keys, func(i int) bool {
		if err := idle[i].Err(); err != nil {
			return countsUses(err)
		}
		least := w.longest
		if of := w.idle[keys[i].group]; of > 0 {
			least = min(least, of)
		}
		return time.Duration(idle[i].Val())*time.Second >= least
	})
}

// countsUses reports whether a server does not report how long keys were idle, because it counts their uses instead
// (maxmemory-policy).
func countsUses(err error) bool { return err != nil && strings.Contains(err.Error(), "LFU") }

// ask sends a command about each key.
func (w *sweeper) ask(ctx context.Context, keys []sweptKey, words ...any) []*redis.IntCmd {
	replies, commands := make([]*redis.IntCmd, len(keys)), make([]redis.Cmder, len(keys))
	for i, k := range keys {
		replies[i] = redis.NewIntCmd(ctx, append(slices.Clone(words), k.key)...)
		replies[i].SetFirstKeyPos(int8(len(words)))
		commands[i] = replies[i]
	}
	w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return keys[i].shard })
	return replies
}

// those returns the keys whose index satisfies is.
func (w *sweeper) those(keys []sweptKey, is func(i int) bool) (list []sweptKey) {
	for i, k := range keys {
		if is(i) {
			list = append(list, k)
		}
	}
	return list
}

// read reads the keys that were found, which ends their idle time.
func (w *sweeper) read(ctx context.Context, at *walk) {
	const once = 10
	for keys, size := 0, 0; len(at.idle) > 0 && keys < sweepRead && size < sweepBytes; keys += once {
		some := at.idle[:min(once, len(at.idle))]
		at.idle = at.idle[len(some):]
		held, commands := make([]*redis.StringCmd, len(some)), make([]redis.Cmder, len(some))
		for i, k := range some {
			held[i] = redis.NewStringCmd(ctx, "get", k.key)
			commands[i] = held[i]
		}
		w.store.send(ctx, w.store.masters.write, commands, func(i int) int { return some[i].shard })
		for i, k := range some {
			if held[i].Err() == nil { // otherwise the walk finds it again
				size += len(held[i].Val())
				w.addCandidate(k.shard, k.key, held[i].Val())
			}
		}
	}
}

// shorten compacts the content of keys, and replaces it if the result is shorter. It prunes later than applying events
// does, because a partition of the entity may be behind others.
func (w *sweeper) shorten(ctx context.Context) {
	if len(w.candidates) == 0 {
		return
	}
	now, err := w.store.Clock(ctx)
	if err == nil {
		err = w.compact(ctx, &state.Batch{Series: w.series, Now: now - w.store.slack.Milliseconds()})
	}
	if err != nil {
		w.candidates, w.noted = nil, nil
		return
	}
	w.compacted = slices.DeleteFunc(w.compacted, func(c compacted) bool {
		kept := len(c.packed) >= len(c.held) && len(c.spilled) == 0
		if kept {
			delete(w.noted, c.key)
		}
		return kept
	})
	shards, calls := w.replace(ctx)
	w.store.send(ctx, w.store.masters.write, calls, func(i int) int { return shards[i] })
}
