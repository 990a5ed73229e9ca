package pipeline

import (
	"context"
	"sync"

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
