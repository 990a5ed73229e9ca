package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// definitions are the processor's definitions, with a signal when they are replaced.
type definitions struct {
	register func(*state.Plan) *registration

	mu         sync.Mutex
	registry   *features.Registry // as given
	registered *registration      // of the last binding, see bind; nil before
	replaced   chan struct{}      // closed when registry is no longer current, or must be bound again
}

func newDefinitions(r *features.Registry, register func(*state.Plan) *registration) *definitions {
	return &definitions{register: register, registry: r, replaced: make(chan struct{})}
}

// registration returns the registration of a plan that is or was current. For nil it returns the current plan's, or nil
// if there is none.
func (d *definitions) registration(p *state.Plan) *registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p == nil || d.registered != nil && p.Version == d.registered.plan.Version {
		return d.registered
	}
	over := d.register(p) // its pool is about to end
	over.begun = true
	return over
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
	if r.Version() != d.registry.Version() {
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
	d.registered = d.register(p)
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

// registerInterval is the time between two calls of Register.
const registerInterval = time.Minute

// register regularly registers the plan as in use, so that its state does not count as
// garbage.
func (p *Processor) register(ctx context.Context) {
	ticker := time.NewTicker(registerInterval)
	defer ticker.Stop()
	trouble := retry.Trouble{Log: p.log, What: "registering the definitions"}
	for {
		_, replaced := p.definitions.current()
		if r := p.definitions.registration(nil); r == nil { // nothing is applied yet
		} else if _, err := r.renew(ctx); err == nil {
			trouble.Over()
		} else if ctx.Err() == nil {
			trouble.Failed(err)
		}
		select {
		case <-ticker.C:
		case <-replaced:
		case <-ctx.Done():
			return
		}
	}
}
