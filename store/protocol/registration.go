package protocol

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// registrations holds the registrations of this process, and the rivals that were returned.
type registrations struct {
	mu     sync.Mutex
	rivals map[registered][]state.Rival
}

type registered struct{ group, version string }

// Register records in the namespace that a group applies a plan. Processors call it before they apply a plan, and
// regularly afterwards. It returns the plans from which this one must not take partitions. If the server of the plans
// does not answer and others do, an earlier registration of the plan by this process is used.
func (p *Protocol) Register(ctx context.Context, r state.Registration) ([]state.Rival, error) {
	rivals, err := p.register(ctx, &r)
	p.registered.mu.Lock()
	defer p.registered.mu.Unlock()
	as := registered{r.Group, r.Plan.Version}
	if known, before := p.registered.rivals[as]; before && !r.Begins && errors.Is(err, state.ErrUnavailable) && p.engine.Down(ctx) == nil {
		return known, nil
	}
	if err != nil {
		return nil, fmt.Errorf("register the plan %s: %w", r.Plan.Version, err)
	}
	if p.registered.rivals == nil {
		p.registered.rivals = map[registered][]state.Rival{}
	}
	p.registered.rivals[as] = rivals
	return rivals, nil
}

func (p *Protocol) register(ctx context.Context, r *state.Registration) (rivals []state.Rival, err error) {
	if err := p.notePlan(ctx, r.Plan); err != nil {
		return nil, err
	}
	err = p.changeRegister(ctx, Used, func(fields map[string]string, clock int64) (c *progress.Change, err error) {
		c, rivals, err = progress.Register(fields, r, clock)
		return c, err
	})
	return rivals, err
}

// Applying lists which groups have applied which plans, the latest first.
func (p *Protocol) Applying(ctx context.Context) ([]progress.Applying, error) {
	used := p.engine.Read(ctx, Query{Records: []int{Used}, For: ToReport})[0]
	if used.Err != nil {
		return nil, fmt.Errorf("read when plans were used: %w", used.Err)
	}
	return progress.InUse(used.Fields)
}

// SeriesUsed lists the series, by ID, that any plan of the namespace keeps or kept, and when such a plan was last in
// use. State of a series that is not listed, or that was unused for longer than it is kept, has no use. A plan with
// partitions is in use, even if it was last registered long ago. Its partitions are recorded with the state, so this
// also holds in an older copy, and while no processor can register. So is when a plan without the series of a fill took
// partitions: until then they were in use, though the master of the registrations may have gone back to before that.
func (p *Protocol) SeriesUsed(ctx context.Context) (map[string]time.Time, error) {
	list, err := p.Applying(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]time.Time{}
	for _, a := range list {
		if a.Used.After(used[a.Version]) {
			used[a.Version] = a.Used
		}
	}
	history, err := p.History(ctx)
	if err != nil {
		return nil, err
	}
	if history.Missing != nil {
		return nil, fmt.Errorf("read which plans have partitions: %w", state.ErrUnavailable)
	}
	for _, e := range history.PlanEpochs {
		if e.Last == state.MaxTime {
			used[e.Version] = p.now()
		}
	}
	versions := make(map[string]bool, len(used))
	for version := range used {
		versions[version] = true
	}
	plans, err := p.plansOf(ctx, versions)
	if err != nil {
		return nil, err
	}
	last := map[string]time.Time{}
	for version, plan := range plans {
		for _, id := range plan.Series() {
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

// Garbage lists the tags of the series that any plan of the namespace keeps or kept, and whether each is garbage: no series with the
// tag was in use for progress.UnusedFor, longer than a processor may hang, and than a rollback takes.
func (p *Protocol) Garbage(ctx context.Context) (map[uint32]bool, error) {
	used, err := p.SeriesUsed(ctx)
	if err != nil {
		return nil, err
	}
	tags := map[uint32]bool{}
	for id, at := range used {
		tag := (&state.Series{ID: id}).Tag()
		other, met := tags[tag]
		tags[tag] = p.now().Sub(at) >= progress.UnusedFor && (other || !met)
	}
	return tags, nil
}
