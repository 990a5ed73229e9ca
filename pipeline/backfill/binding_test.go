package backfill

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/weir-stream/weir/state"
)

func anyFill(*state.Fill) bool { return true }

// watch returns why the work on a binding of definitions with these features ends after something happens.
func (k *keeping) watch(happens func(), names ...string) (cause error) {
	b, err := Bind(k.Context(), k.store, lifetimes(k.T, names...))
	if err != nil {
		k.Fatal(err)
	}
	synctest.Test(k.T, func(t *testing.T) {
		ctx, stop := b.Watch(t.Context(), anyFill)
		defer stop()
		happens()
		<-ctx.Done()
		cause = context.Cause(ctx)
	})
	return cause
}

// Work on a fill ends once no processor keeps any part of it, because it would never be complete.
func TestFillThatNoPlanKeepsEnds(t *testing.T) {
	k := keepingSome(t, "a")
	k.take("a", "b")
	abandoned, is := errors.AsType[*AbandonedError](k.watch(func() { k.take("a") }, "a", "b"))
	if !is || !slices.Equal(abandoned.Features, []string{"b"}) ||
		abandoned.Error() != "the processors have loaded other definitions, and no longer keep what is needed for b" {
		t.Errorf("the work ends with %v, want that b is abandoned", abandoned)
	}
}

// Work on a fill continues while a processor keeps a part of it, and starts over with the new plan of the definitions.
func TestDefinitionsAreBoundToAnotherPlan(t *testing.T) {
	k := keepingSome(t, "a")
	k.take("a", "b")
	files := k.files(cutHere, past, "a", "b")
	if err := k.watch(func() {
		if err := files.Register(t.Context()); err != nil {
			t.Error(err)
		}
	}, "a", "b"); !errors.Is(err, ErrRebound) {
		t.Errorf("the work ends with %v, want %v", err, ErrRebound)
	}
	b, err := Bind(t.Context(), k.store, lifetimes(t, "a", "b"))
	if err != nil {
		t.Fatal(err)
	}
	left := b.left(b.History, anyFill)
	if len(left) == 0 {
		t.Fatal("no fills are left, want some")
	}
	if names := b.abandoned(b.History, left); names != nil {
		t.Errorf("the abandoned features are %v, although a processor keeps them", names)
	}
	if left := b.left(b.History, func(*state.Fill) bool { return false }); left != nil {
		t.Errorf("the fills left are %v, want none", left)
	}
	for i := range b.History.Fills {
		b.History.Fills[i].Whole, b.History.Fills[i].Archived = true, true
	}
	if left := b.left(b.History, anyFill); left != nil {
		t.Errorf("the fills left are %v, although they are complete", left)
	}
}
