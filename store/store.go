// Package store is the contract of where state is kept: what a processor needs to
// apply events exactly once, and what questions read. Each store is a folder below;
// the conformance suite that all of them pass is storetest.
package store

import (
	"context"
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxHistoryAge is the greatest age of a history that an answer may rest on. A plan that retains less than an earlier one
// is applied only when it has had a partition for longer, so that whoever answers knows of it by then.
const MaxHistoryAge = 400 * time.Millisecond

// Store keeps the state of a namespace and, with it, how far each of its shards has
// applied each partition. It is safe for concurrent use.
type Store interface {
	Reader
	Progress

	// Create makes the namespace where it is not there yet. The error is permanent
	// where the namespace has another layout.
	Create(ctx context.Context) error
	// Shards is the number of shards of the state, which never changes.
	Shards() int
	// Bind gives a plan, as definitions make it, the generations of series that it is to
	// keep over the state that is there, and says by what history.
	Bind(ctx context.Context, p *state.Plan) (*state.Plan, *state.History, error)
	// Register notes that a group applies a plan, and returns the rivals that have begun later.
	Register(ctx context.Context, r state.Registration) ([]state.Rival, error)
	// Claim fences partitions for the plan of a version: batches of other plans change
	// nothing of them any more. It returns a claim for each partition. Those that a plan of
	// the versions has which this one gives way to are left to it.
	Claim(ctx context.Context, partitions []state.Partition, version string, givesWayTo ...string) ([]state.Claim, error)
	// Fills are those of which a plan keeps all. What a plan is the first to keep becomes one
	// when it is registered, and what it lacks of a partition is noted when it claims that.
	Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error)
	// Fillings reads for each partition, by shard, how far a fill is with it. Batches of
	// the partition that Fill.Partition names apply what is left, and move that.
	Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error)
	// StartFill says from where partitions are filled, where that was not said before;
	// where it was, it raises the moment since which they are covered.
	StartFill(ctx context.Context, starts ...state.FillStart) error
	// Gap notes that records of a partition were passed over whose timestamps go
	// up to a moment, in milliseconds.
	Gap(ctx context.Context, p state.Partition, until int64) error
	// Available is nil where a shard can be reached, as far as is known. It asks nobody.
	Available(ctx context.Context, shard int) error
	// Follow reads what reads look at into a snapshot. Neither this nor what it is
	// extended by may be older than what Progress says later.
	Follow(ctx context.Context, reads []state.Read) (state.Snapshot, error)
	// NewWriter returns a writer for one goroutine.
	NewWriter() Writer
}

// Writer applies batches for one goroutine.
type Writer interface {
	// Apply applies a batch and moves the progress of its sources, both in one step
	// for each shard: of a batch that comes again only what was not applied yet is
	// applied. It marks the sources that the store has gone back in time on or that
	// another plan has claimed (Behind), and the shards that it could not reach while
	// it could others (Lagging). The error says that the store could not be reached or
	// does not write; the same batch may then be applied again.
	Apply(ctx context.Context, b *state.Batch) error
}

// Progress is how far each shard has applied each partition, for who looks at it or
// moves it without applying records.
type Progress interface {
	// Progress reads for each partition its positions by shard.
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	// Place puts the progress of partitions where applying has not led it, in those
	// shards where it is as it was found before. It returns in how many it was.
	Place(ctx context.Context, placements ...state.Placement) (int, error)
	// Log is what the tag of a position stands for; zero where that is not known.
	Log(ctx context.Context, tag string) (state.LogID, error)
}

// Reader reads what questions are answered from. It never writes.
type Reader interface {
	// Read answers all reads in one round trip; the answers are in the order of the
	// reads. What stands in the way of a single one is in its Err.
	Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error)
	// ReadAsIf answers all reads in one round trip as Read would if a batch had just
	// been applied, but for events that have arrived meanwhile and whose identities
	// are remembered. Without a batch it is Read.
	ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error)
	// ReadReplica answers as ReadAsIf does, but from replicas where there are some that
	// may answer, and says how old the state may be.
	ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error)
	// Clock is the greatest timestamp of a record applied, in milliseconds; 0 if there
	// is none.
	Clock(ctx context.Context) (int64, error)
	// History is which plans the state was written by; nil where the store keeps none,
	// and all state is as complete as its reader knows.
	History(ctx context.Context) (*state.History, error)
	// Applied says whether the record at an offset of a partition is in all state that
	// reads look at; in all state there is, without any reads.
	Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error)
	// Recycle takes back the slices of a Read, ReadAsIf or ReadReplica, for another one: nobody
	// looks at them any more.
	Recycle(slices []state.WindowState)
}
