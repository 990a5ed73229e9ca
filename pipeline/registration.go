package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// registration tells the store that this processor applies a plan. All of it share one, so
// that it begins once: what it has lost to a group that began later it does not take back.
type registration struct {
	store store.Store
	plan  *state.Plan
	group string

	mu    sync.Mutex
	begun bool
}

// renew says it again, and returns the rivals that began later.
func (r *registration) renew(ctx context.Context) ([]state.Rival, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rivals, err := r.store.Register(ctx, state.Registration{Plan: r.plan, Group: r.group, Begins: !r.begun})
	r.begun = r.begun || err == nil
	return rivals, err
}

func (r *registration) hasBegun() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun
}

// What definitions need is bound to the generations of series that are there before it is
// applied, and again once that would be otherwise: where a new generation is filled, the old
// one is no longer needed. See state.Bind.

// bind finds what a registry is applied with, however long the store is away; nil where the
// context ended before. While the master of the plans alone does not answer, what was bound
// last holds for the same definitions.
func (p *Processor) bind(ctx context.Context, given *features.Registry) *features.Registry {
	trouble := retry.Trouble{Log: p.log, What: "finding what there is of the definitions' state"}
	for {
		b := binding{}
		var err error
		b.plan, b.history, err = p.cfg.Store.Bind(ctx, given.Plan())
		if last := p.last; errors.Is(err, state.ErrUnavailable) && last.plan != nil && last.plan.Definitions() == given.Plan().Version {
			b, err = last, nil
		}
		if err == nil {
			p.health.clear("definitions")
			p.last = b
			p.definitions.bound(b.plan)
			return given.Keeping(b.plan, b.history)
		}
		if ctx.Err() != nil {
			return nil
		}
		p.health.set("definitions", err)
		if !retry.Wait(ctx, trouble.Failed(err)) {
			return nil
		}
	}
}

// binding is what definitions were bound to.
type binding struct {
	plan    *state.Plan
	history *state.History
}

// rebind has the definitions bound anew once that makes another plan, until the context ends.
func (p *Processor) rebind(ctx context.Context, given *features.Registry, bound *state.Plan) {
	every := p.cfg.RegisterInterval
	for _, numbers := range bound.Generations {
		if len(numbers) > 1 {
			every = p.cfg.BindInterval
		}
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		plan, history, err := p.cfg.Store.Bind(ctx, given.Plan())
		if err != nil || history.Missing != nil || plan.Version == bound.Version {
			continue // what is not known now may be known next time
		}
		p.log.Info("the state that features read is another from now on", "plan", plan.Version, "before", bound.Version)
		p.definitions.rebind(given)
		return
	}
}
