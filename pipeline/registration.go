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

// registration registers the processor's plan with the store. It is shared within the processor, so that the plan
// begins once: the processor does not take back partitions that it lost to a group that began later.
type registration struct {
	store store.Store
	plan  *state.Plan
	group string

	mu    sync.Mutex
	begun bool
}

// renew renews the registration, and returns the rivals that began later.
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

// Definitions are bound to existing generations of series before they are applied, and again when
// the result would differ: once a new generation is filled, the old one is no longer needed. See
// state.Bind.

// bind finds the plan with which a registry is applied. It waits while the store is unavailable, and returns nil if the
// context ends. While only the master of the plans does not answer, it returns the last binding of the same
// definitions.
func (p *Processor) bind(ctx context.Context, given *features.Registry) *features.Registry {
	trouble := retry.Trouble{Log: p.log, What: "binding the definitions to the existing state"}
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

// binding is the result of binding definitions.
type binding struct {
	plan    *state.Plan
	history *state.History
}

// rebind binds the definitions again as soon as that gives another plan, until the context ends.
func (p *Processor) rebind(ctx context.Context, given *features.Registry, bound *state.Plan) {
	every := registerInterval
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
			continue // the next look may know it
		}
		p.log.Info("features are answered from other generations of their state from now on", "plan", plan.Version, "before", bound.Version)
		p.definitions.rebind(given)
		return
	}
}
