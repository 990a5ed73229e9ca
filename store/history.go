package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
)

// plansKey holds the plans that the namespace was ever written by: HASH
// version -> plan as JSON.
func plansKey(namespace string) string { return namespace + ":plans" }

// usedKey says when each plan was last said to be in use: HASH version -> ms.
func usedKey(namespace string) string { return namespace + ":used" }

// Register tells the namespace of a plan that is in use at a moment. Who
// applies one does so before, and again from time to time.
func (s *Store) Register(ctx context.Context, p *kinds.Plan, now time.Time) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	pipe := s.redis.Pipeline()
	pipe.HSet(ctx, plansKey(s.namespace), p.Version, text)
	pipe.HSet(ctx, usedKey(s.namespace), p.Version, now.UnixMilli())
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("register the plan %s: %w", p.Version, err)
	}
	return nil
}

// SeriesUsed lists the series, by ID, that any plan of the namespace keeps or
// kept, and when such a plan was last in use. State of a series that nobody has
// used for longer than it keeps, or that is not listed, serves nobody.
func (s *Store) SeriesUsed(ctx context.Context) (map[string]time.Time, error) {
	used, err := s.redis.HGetAll(ctx, usedKey(s.namespace)).Result()
	if err != nil {
		return nil, fmt.Errorf("read when plans were used: %w", err)
	}
	versions := make(map[string]bool, len(used))
	for version := range used {
		versions[version] = true
	}
	plans, err := s.plansOf(ctx, versions)
	if err != nil {
		return nil, err
	}
	last := map[string]time.Time{}
	for version, p := range plans {
		ms, err := strconv.ParseInt(used[version], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("plan %s was used at %q, which is no moment", version, used[version])
		}
		at := time.UnixMilli(ms)
		for _, id := range p.Series() {
			if at.After(last[id]) {
				last[id] = at
			}
		}
	}
	return last, nil
}

// History reads which plans the state was written by, over all shards: one
// round trip, and a second one where a plan is met for the first time.
func (s *Store) History(ctx context.Context) (*kinds.History, error) {
	pipe := s.redis.Pipeline()
	replies := make([]*redis.MapStringStringCmd, len(s.tags))
	for shard, tag := range s.tags {
		replies[shard] = pipe.HGetAll(ctx, progressKey(tag))
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, fmt.Errorf("read the history: %w", err)
	}
	type plan struct{ topic, version string }
	last, versions := map[plan]int64{}, map[string]bool{}
	for _, reply := range replies {
		for field, value := range reply.Val() {
			name, _, isProgress := strings.Cut(field, "/")
			topic, version, under := strings.Cut(name, "@")
			if strings.Contains(topic, ":") || !isProgress && !under {
				continue
			}
			at := kinds.NotYet
			if !isProgress {
				var err error
				if at, err = strconv.ParseInt(value, 10, 64); err != nil {
					return nil, fmt.Errorf("the mark %s is %q, which is no moment", field, value)
				}
			}
			last[plan{topic, version}] = max(last[plan{topic, version}], at)
			versions[version] = true
		}
	}
	h := &kinds.History{}
	for p, at := range last {
		h.Marks = append(h.Marks, kinds.Mark{Topic: p.topic, Version: p.version, Last: at})
	}
	var err error
	h.Plans, err = s.plansOf(ctx, versions)
	return h, err
}

// planCache holds plans by version. A version is a hash: what it stands for
// never changes.
type planCache struct {
	mu    sync.Mutex
	plans map[string]*kinds.Plan
}

// plansOf are those of the plans that are known.
func (s *Store) plansOf(ctx context.Context, versions map[string]bool) (map[string]*kinds.Plan, error) {
	s.plans.mu.Lock()
	defer s.plans.mu.Unlock()
	plans := map[string]*kinds.Plan{}
	var missing []string
	for version := range versions {
		if p := s.plans.plans[version]; p != nil {
			plans[version] = p
		} else if version != "" && version != kinds.Gap {
			missing = append(missing, version)
		}
	}
	if len(missing) == 0 {
		return plans, nil
	}
	texts, err := s.redis.HMGet(ctx, plansKey(s.namespace), missing...).Result()
	if err != nil {
		return nil, fmt.Errorf("read the plans: %w", err)
	}
	if s.plans.plans == nil {
		s.plans.plans = map[string]*kinds.Plan{}
	}
	for i, version := range missing {
		text, ok := texts[i].(string)
		if !ok {
			continue
		}
		p := &kinds.Plan{Version: version}
		if err := json.Unmarshal([]byte(text), p); err != nil {
			return nil, fmt.Errorf("read the plan %s: %w", version, err)
		}
		s.plans.plans[version], plans[version] = p, p
	}
	return plans, nil
}
