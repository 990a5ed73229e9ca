package backfill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Binding is the plan that definitions are bound to at some moment. It changes while they are filled: complete
// generations replace older ones, processors take other definitions, or a store goes back in time.
type Binding struct {
	Registry *features.Registry // with the generations that are kept
	History  *state.History     // by which they were chosen

	store store.Store
	given *features.Registry
}

// Bind binds definitions, given without generations.
func Bind(ctx context.Context, s store.Store, given *features.Registry) (*Binding, error) {
	plan, history, err := s.Bind(ctx, given.Plan())
	if err != nil {
		return nil, err
	}
	return &Binding{Registry: given.Keeping(plan, history), History: history, store: s, given: given}, nil
}

// ErrRebound is the cause with which Watch ends work on a plan that is no longer that of the definitions.
var ErrRebound = errors.New("the definitions are bound to another plan now")

// AbandonedError is returned if no processor keeps what features need, so that their fill would never be complete.
type AbandonedError struct{ Features []string }

func (e *AbandonedError) Error() string {
	return fmt.Sprintf("the processors have loaded other definitions, and no longer keep what is needed for %s", strings.Join(e.Features, ", "))
}

// watchInterval is how often Watch checks.
const watchInterval = 2 * time.Second

// Watch returns a context for work on some fills of the binding. It ends when the work can no longer complete them:
// with ErrRebound as its cause once the definitions are bound to another plan, and with an *AbandonedError once no
// processor keeps any part of one of them. Fills that are already complete do not end it.
func (b *Binding) Watch(ctx context.Context, of func(*state.Fill) bool) (context.Context, context.CancelFunc) {
	watched, end := context.WithCancelCause(ctx)
	go func() {
		for retry.Wait(watched, watchInterval) {
			now, err := Bind(watched, b.store, b.given)
			if err != nil {
				continue // the store is unavailable
			}
			left := b.left(now.History, of)
			abandoned := b.abandoned(now.History, left)
			switch {
			case len(left) > 0 && now.Registry.Plan().Version != b.Registry.Plan().Version:
				end(ErrRebound)
			case len(abandoned) > 0:
				end(&AbandonedError{abandoned})
			}
		}
	}()
	return watched, func() { end(context.Canceled) }
}

// left returns the given fills that are not whole according to a later history.
func (b *Binding) left(h *state.History, of func(*state.Fill) bool) (left []*state.Fill) {
	for i := range h.Fills {
		if e := &h.Fills[i]; !e.Done() && e.Fill.In(b.Registry.Plan()) == state.KeptAll && of(e.Fill) {
			left = append(left, e.Fill)
		}
	}
	return left
}

// abandoned lists the features whose fills no processor keeps any part of, sorted by name.
func (b *Binding) abandoned(h *state.History, fills []*state.Fill) (names []string) {
	for _, f := range fills {
		kept := func(e state.PlanEpoch) bool {
			plan := h.Plans[e.Version]
			return e.Last == state.MaxTime && plan != nil && f.In(plan) != state.KeptNone
		}
		if !slices.ContainsFunc(h.PlanEpochs, kept) {
			names = append(names, b.Registry.FilledBy(f)...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// FillsOver returns the fills over a cut that the definitions keep and that can be complete. pending are the features
// without such a fill: processors do not know the files yet, or have other definitions.
func (b *Binding) FillsOver(ctx context.Context, cut state.Cut) (fills []*state.Fill, pending []string, err error) {
	all, err := b.store.Fills(ctx, b.Registry.Plan())
	if err != nil {
		return nil, nil, err
	}
	for _, fill := range all {
		if fill.Cut != nil && *fill.Cut == cut && !b.History.GivenUp(fill) {
			fills = append(fills, fill)
		}
	}
	whole := slices.Clone(fills)
	// A part of a fill that continues itself is not filled on its own.
	fills = slices.DeleteFunc(fills, func(part *state.Fill) bool {
		return slices.ContainsFunc(whole, part.PartOf)
	})
	return fills, b.Registry.Unfilled(cut, fills), nil
}
