package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// plansKey holds all plans that ever wrote to the namespace: HASH version -> plan as JSON.
func plansKey(namespace string) string { return namespace + ":plans" }

// History reads which plans wrote the state, over all shards: in one round trip, and a second one if a plan is not yet
// known. For shards whose master does not answer it has what was last known, and says so. It fails if no master
// answers.
func (s *Store) History(ctx context.Context) (*state.History, error) {
	h, _, err := s.history(ctx)
	return h, err
}

// historyOfServers is History with the runs of the servers. They are asked first: one that is restarted before the rest is read is
// not the one that was read.
func (s *Store) historyOfServers(ctx context.Context) (*state.History, error) {
	servers := s.askServers(ctx, s.masters.question)
	h, missing, err := s.history(ctx)
	if err == nil {
		h.Servers = s.past.keepRuns(servers, missing)
	}
	return h, err
}

// history also returns why shards are missing.
func (s *Store) history(ctx context.Context) (*state.History, []error, error) {
	var servers []*server
	var asking sync.WaitGroup
	asking.Go(func() { servers = s.askServers(ctx, s.masters.question) })
	records, missing := s.readRecords(ctx, s.masters.question, s.allShards())
	asking.Wait()
	lacking, unknown := s.haltedIn(records), 0
	for shard, err := range missing {
		switch {
		case err == nil:
			missing[shard] = lacking.at(shard)
		case !errors.Is(err, state.ErrUnavailable):
			return nil, nil, fmt.Errorf("read the history: %w", err)
		}
		if missing[shard] != nil {
			unknown++
		} else if v := servers[shard]; v != nil && records[shard].Evicted(v.run, v.evicted) {
			records[shard].Lost()
		}
	}
	if unknown == len(s.tags) {
		return nil, nil, fmt.Errorf("read the history: %w", missing[0])
	}
	records = s.past.keep(records, missing)
	plans, err := s.plansOf(ctx, progress.Versions(records))
	if err != nil {
		return nil, nil, err
	}
	fills, err := s.fillsOf(ctx, progress.Fills(records))
	if err != nil {
		return nil, nil, err
	}
	h := progress.History(records, plans, fills)
	h.Slack = s.slack.Milliseconds()
	for _, v := range servers {
		if v != nil {
			h.Clock = max(h.Clock, v.clock)
		}
	}
	h.Now = max(h.Newest, time.Now().UnixMilli())
	if unknown > 0 {
		h.Missing = func(r *state.Read) error { return missing[s.shardOf(r.Entity)] }
	}
	return h, missing, nil
}

// past holds the last answer of each shard, for when its master does not answer.
type past struct {
	mu      sync.Mutex
	records []*progress.Record
	clocks  []int64
	runs    []string // of their servers
}

// unread is the run of a server that no server has: that of a shard that was never read.
const unread = "?"

// keepRuns stores the runs of the servers of the shards, and fills in those of shards that did not answer.
func (p *past) keepRuns(servers []*server, missing []error) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = slices.Repeat([]string{unread}, len(servers))
	}
	for shard, v := range servers {
		switch {
		case missing[shard] != nil:
		case v == nil:
			p.runs[shard] = ""
		default:
			p.runs[shard] = v.run
		}
	}
	return slices.Clone(p.runs)
}

// serverSeen returns the run of a shard's server on which a history is based, as record.lua takes it.
func (s *Store) serverSeen(h *state.History, shard int) string {
	switch {
	case h == nil || h.Servers == nil:
		return ""
	case len(h.Servers) != len(s.tags):
		return unread
	}
	return h.Servers[shard]
}

// keep stores the records of the shards, and fills in the last records of those that did not answer.
func (p *past) keep(records []*progress.Record, missing []error) []*progress.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records == nil {
		p.records = make([]*progress.Record, len(records))
	}
	for shard, r := range records {
		if missing[shard] == nil {
			p.records[shard] = r
		}
	}
	return slices.Clone(p.records)
}

// Clock returns the greatest timestamp, in milliseconds, of a record applied; 0 if there is none. For shards whose
// master does not answer it is the last known one, and their state is not read either. It fails if no master answers.
func (s *Store) Clock(ctx context.Context) (int64, error) {
	replies := askShards(ctx, s, s.masters.question, func(key string) *redis.StringCmd {
		return redis.NewStringCmd(ctx, "hget", key, progress.NewestField)
	})
	s.past.mu.Lock()
	defer s.past.mu.Unlock()
	if s.past.clocks == nil {
		s.past.clocks = make([]int64, len(s.tags))
	}
	unknown := 0
	for shard, reply := range replies {
		now, err := reply.Int64()
		switch {
		case errors.Is(err, state.ErrUnavailable):
			if unknown++; unknown == len(s.tags) {
				return 0, fmt.Errorf("read the clock: %w", err)
			}
			continue
		case err != nil && !errors.Is(err, redis.Nil):
			return 0, fmt.Errorf("read the clock: %w", err)
		}
		s.past.clocks[shard] = now
	}
	return slices.Max(s.past.clocks), nil
}
