package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/protocol"
)

// A server may delete state keys and leave the progress of their shards: if its memory is full and its policy lets it
// evict keys, or if its clock is set ahead and keys expire early. It says so itself, by the number of keys that it has
// evicted and by its time. Each history is compared with that. Processors look each second, and record in the progress
// what they find: so it stays known after a restart or a failover.

const (
	// serversEach is how often servers are looked at.
	serversEach = time.Second
	// jump is how far a clock may go beyond the time that has passed: by less, no key expires early, thanks to the slack.
	jump = 10 * time.Second
)

// ServerNote is what was noticed of a server. One of Policy, Evicted and Jump is not zero.
type ServerNote struct {
	Address string
	Policy  string        // the policy by which it may evict keys
	Evicted int64         // keys that it has evicted since it was last looked at
	Jump    time.Duration // by which its clock was set ahead, or back if negative
}

// NoteServers calls a function when a server turns out to evict keys, or its clock was set. The function must not block.
func NoteServers(note func(ServerNote)) Option { return func(s *Store) { s.servers.note = note } }

// AllowEviction says that servers may evict keys: answers are then incomplete for what they have evicted.
func AllowEviction(allowed bool) Option { return func(s *Store) { s.servers.allowed = allowed } }

// serverWatch is what is known of the servers.
type serverWatch struct {
	note    func(ServerNote)
	allowed bool
	seen    map[int]*seenServer // by shard
}

// seenServer is what is known of the server of a shard, which may be another one than before.
type seenServer struct {
	last  server
	ahead int64 // the greatest time that a clock which was set has shown, until it is recorded
	isNew bool  // it is not recorded yet which run it is, or how many keys it has evicted
}

// server is what a master says about itself.
type server struct {
	protocol.Server
	address string
	policy  string // by which it evicts keys; empty if it does not
	at      time.Time
}

// askServers asks the masters about themselves. It returns what they say, by shard; nil for one that does not answer or
// does not say it.
func (s *Store) askServers(ctx context.Context, within time.Duration) []*server {
	answers := map[*master]*server{}
	of := make([]*master, len(s.tags))
	for shard, tag := range s.tags {
		if m, err := s.masters.of(ctx, tag); err == nil {
			of[shard] = m
			answers[m] = nil
		}
	}
	var asking sync.WaitGroup
	var mu sync.Mutex
	for _, m := range slices.Collect(maps.Keys(answers)) {
		asking.Go(func() {
			v := m.describe(ctx, within)
			mu.Lock()
			defer mu.Unlock()
			answers[m] = v
		})
	}
	asking.Wait()
	found := make([]*server, len(s.tags))
	for shard, m := range of {
		found[shard] = answers[m]
	}
	return found
}

// describe asks the master about itself.
func (m *master) describe(ctx context.Context, within time.Duration) *server {
	if m.err() != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	pipe := m.node.Pipeline()
	about, stats, memory, clock := pipe.Info(ctx, "server"), pipe.Info(ctx, "stats"), pipe.Info(ctx, "memory"), pipe.Time(ctx)
	_, _ = pipe.Exec(ctx) // each command has its own error
	if errors.Join(about.Err(), stats.Err(), memory.Err(), clock.Err()) != nil {
		return nil
	}
	v := &server{address: m.address, at: time.Now(), Server: protocol.Server{Run: infoFields(about.Val())["run_id"], Clock: clock.Val().UnixMilli()}}
	v.Evicted, _ = strconv.ParseInt(infoFields(stats.Val())["evicted_keys"], 10, 64)
	if f := infoFields(memory.Val()); f["maxmemory"] != "0" && f["maxmemory_policy"] != "noeviction" {
		v.policy = f["maxmemory_policy"]
	}
	return v
}

// CheckEviction returns a store.ErrEvicts if a server may evict keys, unless that is allowed.
func (s *Store) CheckEviction(ctx context.Context) error {
	return s.evicts(s.askServers(ctx, s.masters.write))
}

func (s *Store) evicts(servers []*server) error {
	for _, v := range servers {
		if v != nil && v.policy != "" && !s.servers.allowed {
			return &evictsError{v.address, v.policy}
		}
	}
	return nil
}

// evictsError is the error for a server that may evict keys. It is a store.ErrEvicts.
type evictsError struct{ address, policy string }

func (e *evictsError) Error() string {
	return fmt.Sprintf("maxmemory-policy of %s is %s: set noeviction, or redis.allow_eviction: true, with which answers are INCOMPLETE once keys are evicted",
		e.address, e.policy)
}

func (e *evictsError) Unwrap() error { return store.ErrEvicts }

// Degraded reports that questions can still be answered.
func (e *evictsError) Degraded() bool { return true }

// watchServers looks at the servers, and at shards that lack keys, each second until the context ends. Processors
// record what they notice.
func (n *Namespace) watchServers(ctx context.Context) {
	ticker := time.NewTicker(serversEach)
	defer ticker.Stop()
	for {
		s := n.Store()
		err := s.look(ctx, n.applies.Load())
		n.evicts.Store(&err)
		if n.applies.Load() {
			s.freezeLost(ctx)
		}
		if s.halted.Load() != nil {
			s.findHalted(ctx) // they may have been copied again
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look notes what is new of the servers, and records it in the shards. It returns that of CheckEviction.
func (s *Store) look(ctx context.Context, record bool) error {
	servers := s.askServers(ctx, s.masters.write)
	w := &s.servers
	if w.seen == nil {
		w.seen = map[int]*seenServer{}
	}
	noted := map[ServerNote]bool{} // of a server with several shards, once
	note := func(n ServerNote) {
		if !noted[n] {
			noted[n] = true
			w.note(n)
		}
	}
	for shard, v := range servers {
		if v == nil {
			continue
		}
		if w.seen[shard] == nil {
			w.seen[shard] = &seenServer{last: server{Server: protocol.Server{Clock: v.Clock}, at: v.at}}
		}
		w.seen[shard].see(v, note)
	}
	if record {
		s.record(ctx, servers)
	}
	return s.evicts(servers)
}

// see compares the server of the shard with what it was when it was last looked at.
func (w *seenServer) see(v *server, note func(ServerNote)) {
	before := w.last
	w.last = *v
	if v.policy != "" && v.policy != before.policy {
		note(ServerNote{Address: v.address, Policy: v.policy})
	}
	if v.Run != before.Run || v.Evicted != before.Evicted {
		w.isNew = true
	}
	if more := v.Evicted - before.Evicted; v.Run == before.Run && more > 0 {
		note(ServerNote{Address: v.address, Evicted: more})
	}
	// A clock that goes back may have been ahead until now, also if nobody saw that begin. A failover goes from a clock to another.
	passed := v.at.Sub(before.at)
	if off := time.Duration(v.Clock-before.Clock)*time.Millisecond - passed; off > jump || off < -jump {
		note(ServerNote{Address: v.address, Jump: off})
		w.ahead = max(w.ahead, v.Clock, before.Clock+passed.Milliseconds())
	}
}

// record records in the shards what was noticed of their servers. What fails is tried again after the next look.
func (s *Store) record(ctx context.Context, servers []*server) {
	noticed := map[int]protocol.Noticed{}
	for shard, v := range servers {
		if v == nil {
			continue
		}
		if w := s.servers.seen[shard]; w.isNew || w.ahead > 0 {
			noticed[shard] = protocol.Noticed{Server: v.Server, Ahead: w.ahead}
		}
	}
	if len(noticed) == 0 {
		return
	}
	_ = s.Notice(ctx, noticed, func(shard int) {
		w := s.servers.seen[shard]
		w.ahead, w.isNew = 0, false
	})
}
