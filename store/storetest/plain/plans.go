package plain

import (
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

// registered is a group that applies a plan.
type registered struct{ version, group string }

// usage is when the group began with the plan, and when it last registered it.
type usage struct{ began, used time.Time }

// Register records that a group applies a plan.
func (s *Store) Register(_ context.Context, r state.Registration) (rivals []state.Rival, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(r.Plan)
	now := r.At
	if now.IsZero() {
		now = s.now()
	}
	mine, newest := registered{r.Plan.Version, r.Group}, time.Time{}
	began := s.used[mine].began
	for other, u := range s.used {
		if u.began.After(newest) {
			newest = u.began
		}
		// A plan of the same definitions with other generations keeps their beginning.
		if _, known := s.used[mine]; !known && other.group == r.Group && (&state.Plan{Version: other.version}).Definitions() == r.Plan.Definitions() && u.began.After(began) {
			began = u.began
		}
	}
	if r.Begins || began.IsZero() {
		if began = now; !began.After(newest) {
			began = newest.Add(time.Millisecond)
		}
	}
	s.used[mine] = usage{began, now}
	for other, u := range s.used {
		if other.version != mine.version && other.group != mine.group && u.began.After(began) && now.Sub(u.used) < state.RivalInUse {
			rivals = append(rivals, state.Rival{Group: other.group, Version: other.version, Began: u.began})
		}
	}
	slices.SortFunc(rivals, func(a, b state.Rival) int { return a.Began.Compare(b.Began) })
	return rivals, nil
}

// note adds a plan and its fills.
func (s *Store) note(p *state.Plan) {
	for _, f := range state.NewFills(p, slices.Collect(maps.Values(s.plans))) {
		s.fills[f.ID] = f
	}
	s.plans[p.Version] = p
	for _, f := range state.InOrder(s.fills) {
		if part := f.Part(p); part != nil && s.fills[part.ID] == nil {
			s.fills[part.ID] = part
		}
	}
}

// Claim takes partitions for the plan of a version.
func (s *Store) Claim(_ context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := make([]state.Claim, len(partitions))
	for i, p := range partitions {
		claims[i].OwnedMs = math.MaxInt64
		claims[i].Progress = make([]state.Position, len(s.shards))
		for shard, sh := range s.shards {
			if sh.hangs {
				claims[i].Miss(shard, errHangs)
				continue
			}
			sh.clamp(s.now().Add(state.MaxAhead).UnixMilli())
			claims[i].Progress[shard] = s.claim(&claims[i], sh, p, by.Version, by.GivesWayTo)
		}
	}
	return claims, s.allHang()
}

// claim takes a partition of one shard, and returns its position.
func (s *Store) claim(c *state.Claim, sh *shard, p state.Partition, version string, givesWayTo []string) state.Position {
	o := sh.owned[p]
	switch {
	case o == nil:
		s.feed(sh, p, nil, version)
		if seen, met := sh.topics[p.Topic]; met {
			c.Topic = &seen
		}
		return state.NoPosition
	case o.version != version && slices.Contains(givesWayTo, o.version):
		c.KeptBy = o.version
		return state.NoPosition
	case o.version != version:
		s.feed(sh, p, o, version)
		sh.end(p.Topic, o.version, sh.now)
		o.version, o.since = version, s.now()
		sh.mergeEpochs(p.Topic)
	}
	c.OwnedMs = min(c.OwnedMs, max(0, s.now().Sub(o.since).Milliseconds()))
	return o.at
}

// Bind adds to a plan the generations of series to keep.
func (s *Store) Bind(_ context.Context, p *state.Plan) (*state.Plan, *state.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.history()
	return state.Bind(p, &state.Known{Plans: s.plans, Fills: s.fills, Archives: s.archives, History: h, Now: s.clock()}), h, nil
}

// History says which plans wrote the state.
func (s *Store) History(context.Context) (*state.History, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.history(), s.allHang()
}

// history has what is known of shards that hang, too, and says so.
func (s *Store) history() *state.History {
	last := map[epoch]int64{}
	h := &state.History{
		Plans: maps.Clone(s.plans), Fills: s.fillEpochs(), Slack: slack.Milliseconds(),
		Newest: s.clock(), Now: s.clock(), // by the records' times only: tests replay the past
	}
	if s.hang() != nil {
		h.Missing = func(r *state.Read) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.shardOf(r.Entity).err()
		}
	}
	for _, sh := range s.shards {
		if sh.lag != nil && (h.Lag == nil || *sh.lag < *h.Lag) {
			h.Lag = sh.lag
		}
		for e, at := range sh.ended {
			last[e] = max(last[e], at)
		}
		for p, o := range sh.owned {
			last[epoch{p.Topic, o.version}] = state.MaxTime
		}
	}
	for e, at := range last {
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: e.topic, Version: e.version, Last: at})
	}
	return h
}
