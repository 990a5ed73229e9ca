package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// definitions are the processor's definitions, with a signal when they are replaced.
type definitions struct {
	newRegistration func(*state.Plan) *registration

	mu         sync.Mutex
	registry   *features.Registry // as given
	registered *registration      // of the last binding, see bind; nil before
	replaced   chan struct{}      // closed when registry is no longer current, or must be bound again
}

func newDefinitions(r *features.Registry, newRegistration func(*state.Plan) *registration) *definitions {
	return &definitions{newRegistration: newRegistration, registry: r, replaced: make(chan struct{})}
}

// registration returns the registration of a plan that is or was current.
func (d *definitions) registration(p *state.Plan) *registration {
	if r := d.currentRegistration(); r != nil && p.Version == r.plan.Version {
		return r
	}
	over := d.newRegistration(p) // its pool is about to end
	over.begun = true
	return over
}

// currentRegistration returns the registration of the current plan, nil before there is one.
func (d *definitions) currentRegistration() *registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.registered
}

// current returns the registry, and a channel that is closed when it is replaced or must be bound again.
func (d *definitions) current() (*features.Registry, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.registry, d.replaced
}

func (d *definitions) replace(r *features.Registry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !r.Same(d.registry) {
		d.registry = r
		d.signal()
	}
}

// rebind requests another binding of a registry, if it is still current.
func (d *definitions) rebind(r *features.Registry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r == d.registry {
		d.signal()
	}
}

// signal makes the workers start over, with a new binding.
func (d *definitions) signal() {
	close(d.replaced)
	d.replaced = make(chan struct{})
}

// bound sets the plan with which the current registry is applied. A plan of the same definitions
// continues the registration of the earlier one.
func (d *definitions) bound(p *state.Plan) {
	d.mu.Lock()
	defer d.mu.Unlock()
	before := d.registered
	if before != nil && before.plan.Version == p.Version {
		return
	}
	d.registered = d.newRegistration(p)
	d.registered.begun = before != nil && before.hasBegun() && before.plan.Definitions() == p.Definitions()
}

// Reload replaces the processor's definitions. Records that were mapped with the old ones are applied first. Then each
// partition is claimed for the new ones, and read from its progress. If they read other topics, the processor joins the
// next generation of its group for those; the partitions of unchanged topics continue.
func (p *Processor) Reload(r *features.Registry) { p.definitions.replace(r) }

// until returns a context that also ends when the channel is closed.
func until(ctx context.Context, closed <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
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
		b := &binding{}
		var err error
		b.plan, b.history, err = p.cfg.Store.Bind(ctx, given.Plan())
		if last := p.last.Load(); errors.Is(err, state.ErrUnavailable) && last != nil && last.plan.Definitions() == given.Plan().Version {
			b, err = last, nil
		}
		if err == nil {
			trouble.Over()
			p.health.clear("definitions")
			p.last.Store(b)
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

// rebind binds the definitions again as soon as that gives something else, until the context ends.
func (p *Processor) rebind(ctx context.Context, given *features.Registry, bound *state.Plan) {
	every := p.cfg.BindInterval
	if !bound.Passing() {
		every *= 30 // it binds to something else only if state was lost
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if p.bindsOtherwise(ctx, given, bound) {
			p.definitions.rebind(given)
			return
		}
	}
}

// bindsOtherwise reports whether definitions bind to another plan now, or to the same one without what was passing, as
// far as that can be known.
func (p *Processor) bindsOtherwise(ctx context.Context, given *features.Registry, bound *state.Plan) bool {
	plan, history, err := p.cfg.Store.Bind(ctx, given.Plan())
	if err == nil && plan.Version == bound.Version && plan.Passing() == bound.Passing() {
		p.last.Store(&binding{plan, history})
		return false
	}
	if err != nil || history.Missing != nil {
		return false
	}
	p.log.Info("features are answered from other generations of their state from now on", "plan", plan.Version, "before", bound.Version)
	return true
}
