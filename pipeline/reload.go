package pipeline

import (
	"context"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
)

// definitions are those that the processor works with, and the way to learn
// that there are others.
type definitions struct {
	register func(*features.Registry) *registration

	mu         sync.Mutex
	registry   *features.Registry
	registered *registration // of the registry
	replaced   chan struct{} // closed when registry is no longer the present one
}

func newDefinitions(r *features.Registry, register func(*features.Registry) *registration) *definitions {
	return &definitions{register: register, registry: r, registered: register(r), replaced: make(chan struct{})}
}

// registration is that of a registry that is or was the present one.
func (d *definitions) registration(r *features.Registry) *registration {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Plan().Version == d.registered.plan.Version {
		return d.registered
	}
	over := d.register(r) // its pool is about to end
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
	if r.Version() == d.registry.Version() {
		return
	}
	d.registry = r
	if r.Plan().Version != d.registered.plan.Version {
		d.registered = d.register(r)
	}
	close(d.replaced)
	d.replaced = make(chan struct{})
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
		registry, replaced := p.definitions.present()
		if _, err := p.definitions.registration(registry).renew(ctx); err == nil {
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
