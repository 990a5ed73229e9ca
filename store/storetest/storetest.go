// Package storetest is the conformance suite of stores: answers equal those of a plain loop over the events, and each
// event counts once, even if several owners apply it several times.
//
// A store that keeps progress runs TestStore, one that does not runs TestState.
package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

const day = 24 * 60 * 60 * 1000

// transactions is the partition that the suite applies.
var transactions = state.Partition{Topic: "transactions", ID: 3}

// State applies batches and answers from them.
type State interface {
	store.Reader
	Apply(ctx context.Context, b *state.Batch) error
}

// TestState runs the suite for anything that keeps state. Open makes an empty one.
func TestState(t *testing.T, open func() State) {
	t.Run("functions", func(t *testing.T) { testFunctions(t, open) })
	t.Run("pending", func(t *testing.T) { testPending(t, open) })
}

// TestStore runs the whole suite for stores. Open makes an empty namespace with a number of shards.
func TestStore(t *testing.T, open func(shards int) store.Store) {
	TestState(t, func() State { return applyingStore(t, open(4)) })
	t.Run("snapshot", func(t *testing.T) { testSnapshot(t, func() store.Store { return open(4) }) })
	t.Run("progress", func(t *testing.T) { testProgress(t, func() store.Store { return open(4) }) })
	t.Run("busiest", func(t *testing.T) { testBusiest(t, open(4)) })
	t.Run("slices", func(t *testing.T) { testSlices(t, func() store.Store { return open(4) }) })
	t.Run("fill", func(t *testing.T) { testFill(t, func() store.Store { return open(4) }) })
	t.Run("fill log", func(t *testing.T) { testFillLog(t, func() store.Store { return open(4) }) })
	t.Run("fill own", func(t *testing.T) { testFillOwn(t, func() store.Store { return open(4) }) })
	t.Run("no position", func(t *testing.T) { testNoPosition(t, func() store.Store { return open(4) }) })
	t.Run("parts of fills", func(t *testing.T) { testParts(t, func() store.Store { return open(4) }) })
	t.Run("archive", func(t *testing.T) { testArchive(t, func() store.Store { return open(4) }) })
}

// applyingStore returns a store to which one owner applies a partition from its start.
func applyingStore(t testing.TB, s store.Store) State {
	t.Helper()
	if _, err := s.Place(context.Background(), testkit.FirstPlacement(transactions, s.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	return &applying{s, s.NewWriter()}
}

type applying struct {
	store.Store
	writer store.Writer
}

// Apply applies a batch, which must continue the earlier ones; all of it must be accepted.
func (a *applying) Apply(ctx context.Context, b *state.Batch) error {
	progress, err := a.Progress(ctx, []state.Partition{transactions})
	if err != nil {
		return err
	}
	b.Ranges[0].Progress = progress[0]
	if err := a.writer.Apply(ctx, b); err != nil {
		return err
	}
	if b.Ranges[0].Behind || b.Refused > 0 {
		return fmt.Errorf("behind %v, %d refused: %s", b.Ranges[0].Behind, b.Refused, b.Refusal)
	}
	return nil
}
