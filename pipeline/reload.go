package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// definitions are those that the processor works with, and the way to learn
// that there are others.
type definitions struct {
	register func(*state.Plan) *registration

	mu         sync.Mutex
	registry   *features.Registry // as it was given
	registered *registration      // of what was bound last, see bind; nil before
	replaced   chan struct{}      // closed when registry is no longer the present one, or is to be bound anew
}

func newDefinitions(r *features.Registry, register func(*state.Plan) *registration) *definitions {
	return &definitions{register: register, registry: r, replaced: make(chan struct{})}
}

// registration is that of a plan that is or was the present one; of the present one for nil,
// and nil before there is one.
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

func (d *definitions) present() (*features.Registry, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.registry, d.replaced
}

func (d *definitions) replace(r *features.Registry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Version() != d.registry.Version() {
		d.registry = r
		d.again()
	}
}

// rebind has a registry bound anew, if it is still the present one.
func (d *definitions) rebind(r *features.Registry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r == d.registry {
		d.again()
	}
}

// again has the workers end and begin with what is bound then.
func (d *definitions) again() {
	close(d.replaced)
	d.replaced = make(chan struct{})
}

// bound notes the plan that the present registry is applied with. One of the same
// definitions goes on with what the other has begun.
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

// Reload lets the processor go on with other definitions. What it has mapped by
// the old ones is applied first; then each partition is claimed for the new
// ones, and read from where its progress is. Where they read other topics, the
// processor joins the next generation of its group for those; the partitions of topics that
// it reads as before go on.
func (p *Processor) Reload(r *features.Registry) { p.definitions.replace(r) }

// until is a context that also ends when the channel is closed.
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

// register tells the store from time to time that the plan is in use, so that
// what it keeps is not taken for what nobody needs.
func (p *Processor) register(ctx context.Context) {
	ticker := time.NewTicker(p.cfg.RegisterInterval)
	defer ticker.Stop()
	trouble := retry.Trouble{Log: p.log, What: "registering the definitions"}
	for {
		_, replaced := p.definitions.present()
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
