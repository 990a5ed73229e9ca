package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
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
	replies := askShards(ctx, s, s.masters.question, func(progress string) *redis.MapStringStringCmd {
		return redis.NewMapStringStringCmd(ctx, "hgetall", progress)
	})
	asking.Wait()
	missing := make([]error, len(s.tags))
	unknown := 0
	lacking := s.haltedIn(replies)
	found := make([]epochs, len(s.tags))
	for shard, reply := range replies {
		switch err := reply.Err(); {
		case errors.Is(err, state.ErrUnavailable):
			missing[shard] = err
			unknown++
			continue
		case err != nil:
			return nil, nil, fmt.Errorf("read the history: %w", err)
		}
		fields := reply.Val()
		var err error
		if found[shard], err = readEpochs(fields); err != nil {
			return nil, nil, err
		}
		if missing[shard] = lacking.at(shard); missing[shard] != nil {
			unknown++
			continue
		}
		if servers[shard].unrecorded(fields) {
			found[shard].evictedNow(fields)
		}
	}
	if unknown == len(s.tags) {
		return nil, nil, fmt.Errorf("read the history: %w", missing[0])
	}
	s.past.keep(found, missing)
	fields := s.past.keepFields(replies, missing)
	h, err := s.unite(ctx, found)
	if err != nil {
		return nil, nil, err
	}
	if h.Fills, err = s.fillEpochs(ctx, fields, h.Plans); err != nil {
		return nil, nil, err
	}
	h.Slack = s.slack.Milliseconds()
	for shard, v := range servers {
		if v != nil {
			h.Clock = max(h.Clock, v.clock)
		}
		ahead, err := parseAhead(fields[shard][keyspace.AheadField])
		if err != nil {
			return nil, nil, err
		}
		h.Ahead = state.Ahead{Clock: max(h.Ahead.Clock, ahead.Clock), Newest: max(h.Ahead.Newest, ahead.Newest)}
	}
	if h.Lag, err = leastLag(replies); err != nil {
		return nil, nil, err
	}
	if h.Newest, err = newestRecord(fields); err != nil {
		return nil, nil, err
	}
	h.Now = max(h.Newest, time.Now().UnixMilli())
	if unknown > 0 {
		h.Missing = func(r *state.Read) error { return missing[s.shardOf(r.Entity)] }
	}
	return h, missing, nil
}

// newestRecord returns the greatest timestamp, in ms, of a record that a shard has applied.
func newestRecord(shards []map[string]string) (newest int64, err error) {
	for _, fields := range shards {
		text, ok := fields[keyspace.ClockField]
		if !ok {
			continue
		}
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the newest record's timestamp is %q, which is not a time", text)
		}
		newest = max(newest, at)
	}
	return newest, nil
}

// leastLag returns the least lag of all shards, nil if none has one; see state.History.Lag.
func leastLag(shards []*redis.MapStringStringCmd) (least *int64, err error) {
	for _, reply := range shards {
		text, ok := reply.Val()[keyspace.LagField]
		if !ok {
			continue
		}
		lag, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("the least lag is %q, which is not a time", text)
		}
		if least == nil || lag < *least {
			least = &lag
		}
	}
	return least, nil
}

// epochKey names a plan that was applied to a topic.
type epochKey struct{ topic, version string }

// epochs maps the plans that one shard has recorded to the time, in ms, until which they were applied; state.MaxTime
// while a plan is applied.
type epochs map[epochKey]int64

// readEpochs parses the fields of a shard's progress.
func readEpochs(fields map[string]string) (epochs, error) {
	last := epochs{}
	for field, value := range fields {
		name, _, isProgress := strings.Cut(field, "/")
		topic, version, under := strings.Cut(name, "@")
		if strings.Contains(topic, ":") || !isProgress && !under {
			continue
		}
		at := state.MaxTime
		if !isProgress {
			var err error
			if at, err = strconv.ParseInt(value, 10, 64); err != nil {
				return nil, fmt.Errorf("the plan epoch %s ends at %q, which is not a timestamp", field, value)
			}
		}
		p := epochKey{topic, version}
		last[p] = max(last[p], at)
	}
	return last, nil
}

// unite makes one history from the plan epochs of all shards.
func (s *Store) unite(ctx context.Context, shards []epochs) (*state.History, error) {
	last, versions := epochs{}, map[string]bool{}
	for _, found := range shards {
		for p, at := range found {
			last[p] = max(last[p], at)
			versions[p.version] = true
		}
	}
	h := &state.History{}
	for p, at := range last {
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: p.topic, Version: p.version, Last: at})
	}
	var err error
	h.Plans, err = s.plansOf(ctx, versions)
	return h, err
}

// past holds the last answer of each shard, for when its master does not answer.
type past struct {
	mu     sync.Mutex
	epochs []epochs
	fields []map[string]string // of the progress
	clocks []int64
	runs   []string // of their servers
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

// serverSeen returns the run of a shard's server on which a history is based, as claim.lua takes it.
func (s *Store) serverSeen(h *state.History, shard int) string {
	switch {
	case h == nil || h.Servers == nil:
		return ""
	case len(h.Servers) != len(s.tags):
		return unread
	}
	return h.Servers[shard]
}

// keepFields stores the progress fields of the shards, and fills in those of shards that did not
// answer.
func (p *past) keepFields(replies []*redis.MapStringStringCmd, missing []error) []map[string]string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fields == nil {
		p.fields = make([]map[string]string, len(replies))
	}
	for shard, reply := range replies {
		if missing[shard] == nil {
			p.fields[shard] = reply.Val()
		}
	}
	return slices.Clone(p.fields)
}

// keep stores the answers of the shards, and fills in the last answers of those that did not answer.
func (p *past) keep(found []epochs, missing []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.epochs == nil {
		p.epochs = make([]epochs, len(found))
	}
	for shard := range found {
		if missing[shard] == nil {
			p.epochs[shard] = found[shard]
		}
		found[shard] = p.epochs[shard]
	}
}

// Clock returns the greatest timestamp, in milliseconds, of a record applied; 0 if there is none. For shards whose
// master does not answer it is the last known one, and their state is not read either. It fails if no master answers.
func (s *Store) Clock(ctx context.Context) (int64, error) {
	replies := askShards(ctx, s, s.masters.question, func(progress string) *redis.StringCmd {
		return redis.NewStringCmd(ctx, "hget", progress, keyspace.ClockField)
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
