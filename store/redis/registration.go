package redisstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// usedKey returns the key with the plans in use: which group began with which plan, and when it was last registered;
// see progress.InUse.
func usedKey(namespace string) string { return namespace + ":used" }

// registrations holds the registrations of this store, and the rivals that were returned.
type registrations struct {
	mu     sync.Mutex
	rivals map[string][]state.Rival // by field of the key
}

// Register records in the namespace that a group applies a plan. Processors call it before they apply a plan, and
// regularly afterwards. It returns the plans from which this one must not take partitions. If the master of the plans
// does not answer and others do, an earlier registration of the plan by this store is used.
func (s *Store) Register(ctx context.Context, r state.Registration) ([]state.Rival, error) {
	field := r.Plan.Version + "/" + r.Group
	rivals, err := s.register(ctx, &r)
	s.registered.mu.Lock()
	defer s.registered.mu.Unlock()
	if known, before := s.registered.rivals[field]; before && !r.Begins && errors.Is(err, state.ErrUnavailable) && s.down(ctx) == nil {
		return known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("register the plan %s: %w", r.Plan.Version, err)
	}
	if s.registered.rivals == nil {
		s.registered.rivals = map[string][]state.Rival{}
	}
	s.registered.rivals[field] = rivals
	return rivals, nil
}

func (s *Store) register(ctx context.Context, r *state.Registration) (rivals []state.Rival, err error) {
	if err := s.notePlan(ctx, r.Plan); err != nil {
		return nil, err
	}
	err = s.changeRegister(ctx, usedKey(s.namespace), func(fields map[string]string, clock int64) (c *progress.Change, err error) {
		c, rivals, err = progress.Register(fields, r, clock)
		return c, err
	})
	return rivals, err
}

// Applying lists which groups have applied which plans, the latest first.
func (s *Store) Applying(ctx context.Context) ([]progress.Applying, error) {
	command := redis.NewMapStringStringCmd(ctx, "hgetall", usedKey(s.namespace))
	if err := s.sendAbout(ctx, usedKey(s.namespace), command); err != nil {
		return nil, fmt.Errorf("read when plans were used: %w", err)
	}
	return progress.InUse(command.Val())
}

// SeriesUsed lists the series, by ID, that any plan of the namespace keeps or kept, and when such a plan was last in
// use. State of a series that is not listed, or that was unused for longer than it is kept, has no use. A plan with
// partitions is in use, even if it was last registered long ago. Its partitions are recorded with the state, so this
// also holds in an older copy, and while no processor can register. So is when a plan without the series of a fill took
// partitions: until then they were in use, though the master of the registrations may have gone back to before that.
func (s *Store) SeriesUsed(ctx context.Context) (map[string]time.Time, error) {
	list, err := s.Applying(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]time.Time{}
	for _, a := range list {
		if a.Used.After(used[a.Version]) {
			used[a.Version] = a.Used
		}
	}
	history, err := s.History(ctx)
	if err != nil {
		return nil, err
	}
	if history.Missing != nil {
		return nil, fmt.Errorf("read which plans have partitions: %w", state.ErrUnavailable)
	}
	for _, e := range history.PlanEpochs {
		if e.Last == state.MaxTime {
			used[e.Version] = time.Now()
		}
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
		for _, id := range p.Series() {
			if used[version].After(last[id]) {
				last[id] = used[version]
			}
		}
	}
	for i := range history.Fills {
		f := &history.Fills[i]
		for _, id := range f.Fill.Series() {
			if opened := time.UnixMilli(f.Opened); f.Opened > 0 && opened.After(last[id]) {
				last[id] = opened
			}
		}
	}
	return last, nil
}
