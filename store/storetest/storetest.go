// Package storetest is the conformance suite of stores: what the protocol promises, a file for each promise.
//
// Anything that keeps state runs TestState. A store that keeps progress runs TestStore; one whose clock can be moved runs
// TestTime, and one whose shards can fail separately runs TestPartialFailure. The plain store runs all of them.
package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

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

// Namespace is an empty namespace of a store under test, and what happens to it beside calls.
type Namespace interface {
	store.Store
	// Another returns the store of another process with the namespace, which has read nothing of it yet.
	Another() store.Store
	// Save returns a function that puts a shard back to the moment of the call, as a failover or an older copy may.
	Save(shard int) (restore func())
	// SavePlans returns a function that puts the plans, and what is registered with them, back to the moment of the call.
	SavePlans() (restore func())
	// LoseRecord removes the record of a shard, and leaves its state.
	LoseRecord(shard int)
	// Interrupt has calls of Apply fail after some more steps: the changes that the store makes at once, in one shard. A
	// negative number ends that.
	Interrupt(steps int)
	// Spoil replaces what is held of an entity in the group of a series by something that Weir did not write.
	Spoil(s *state.Series, entity string)
}

// Open makes an empty namespace with a number of shards. An Apply makes at most that many mutations in a step; 0 leaves
// that to the store.
type Open func(shards, mutations int) Namespace

// Timed is a namespace with a clock that can be moved.
type Timed interface {
	Namespace
	// Pass moves the store's clock, back if the time is negative. Processes keep theirs.
	Pass(d time.Duration)
}

// Parted is a namespace whose shards can fail separately.
type Parted interface {
	Namespace
	// Hang makes some shards, but not all, unreachable until the end, and returns which. When the end returns, they can
	// be reached.
	Hang() (hung []bool, end func())
}

// TestState runs the suite for anything that keeps state. Open makes an empty one.
func TestState(t *testing.T, open func() State) {
	t.Run("functions", func(t *testing.T) { testFunctions(t, open) })
	t.Run("pending", func(t *testing.T) { testPending(t, open) })
	t.Run("forged", func(t *testing.T) { testForged(t, open()) })
}

// TestStore runs the suite for stores.
func TestStore(t *testing.T, open Open) {
	four := func() store.Store { return open(4, 0) }
	TestState(t, func() State { return applyingStore(t, open(4, 0)) })
	t.Run("snapshot", func(t *testing.T) { testSnapshot(t, four) })
	t.Run("progress", func(t *testing.T) { testProgress(t, four) })
	t.Run("applied", func(t *testing.T) { testApplied(t, open(8, 0)) })
	t.Run("spare", func(t *testing.T) { testSpare(t, open(2, 0)) })
	t.Run("placements", func(t *testing.T) { testPlacements(t, open) })
	t.Run("claims", func(t *testing.T) { testClaims(t, open) })
	t.Run("registrations", func(t *testing.T) { testRegistrations(t, open) })
	t.Run("epochs", func(t *testing.T) { testEpochs(t, open(1, 0)) })
	t.Run("future", func(t *testing.T) { testFuture(t, open(2, 0)) })
	t.Run("lag", func(t *testing.T) { testLag(t, open(2, 0)) })
	t.Run("refusals", func(t *testing.T) { testRefusals(t, open(4, 0)) })
	t.Run("secrets", func(t *testing.T) { testSecrets(t, open) })
	t.Run("interruptions", func(t *testing.T) { testInterruptions(t, open) })
	t.Run("lost record", func(t *testing.T) { testLostRecord(t, open(2, 0)) })
	t.Run("histories", func(t *testing.T) { TestHistories(t, open, 12) })
	t.Run("busiest", func(t *testing.T) { testBusiest(t, four()) })
	t.Run("slices", func(t *testing.T) { testSlices(t, four) })
	t.Run("fill", func(t *testing.T) { testFill(t, four) })
	t.Run("fill claimed", func(t *testing.T) { testFillClaimed(t, four) })
	t.Run("fill log", func(t *testing.T) { testFillLog(t, four) })
	t.Run("fill own", func(t *testing.T) { testFillOwn(t, four) })
	t.Run("no position", func(t *testing.T) { testNoPosition(t, four) })
	t.Run("parts of fills", func(t *testing.T) { testParts(t, four) })
	t.Run("plans back", func(t *testing.T) { testPlansBack(t, open) })
	t.Run("archive", func(t *testing.T) { testArchive(t, four) })
}

// TestTime runs what depends on the store's clock.
func TestTime(t *testing.T, open func(shards int) Timed) {
	t.Run("away", func(t *testing.T) { testAway(t, open) })
	t.Run("owned", func(t *testing.T) { testOwned(t, open(2)) })
	t.Run("future lowered", func(t *testing.T) { testFutureLowered(t, open(2)) })
	t.Run("lag grows", func(t *testing.T) { testLagGrows(t, open(2)) })
	t.Run("expiry", func(t *testing.T) { testExpiry(t, open) })
	t.Run("busiest forgotten", func(t *testing.T) { testBusiestForgotten(t, open(2)) })
}

// TestPartialFailure runs what happens while some shards cannot be reached.
func TestPartialFailure(t *testing.T, open func(shards int) Parted) {
	t.Run("unreachable", func(t *testing.T) { testUnreachable(t, open) })
}

// applyingStore returns a store to which one owner applies a partition from its start.
func applyingStore(t testing.TB, s store.Store) State {
	t.Helper()
	if _, err := s.Place(context.Background(), testkit.FirstPlacement(transactions, s.Shards(), 0)); err != nil {
		t.Fatal(err)
	}
	return &applying{s, s.NewWriter()}
}

// Secret returns the secret of a store that hashes values with one.
func (a *applying) Secret(ctx context.Context) (state.Secret, error) {
	if keyed, ok := a.Store.(interface {
		Secret(context.Context) (state.Secret, error)
	}); ok {
		return keyed.Secret(ctx)
	}
	return state.Secret{}, nil
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
