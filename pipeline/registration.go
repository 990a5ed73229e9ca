package pipeline

import (
	"context"
	"sync"
	"time"

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

// registerInterval is the time between two calls of Register. If the plans are lost, answers are INCOMPLETE for at most that long.
const registerInterval = 10 * time.Second

// register regularly registers the plan as in use, so that its state does not count as
// garbage.
func (p *Processor) register(ctx context.Context) {
	ticker := time.NewTicker(registerInterval)
	defer ticker.Stop()
	trouble := retry.Trouble{Log: p.log, What: "registering the definitions"}
	for {
		_, replaced := p.definitions.current()
		if r := p.definitions.currentRegistration(); r == nil { // nothing is applied yet
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
