// Package store is the contract of a store of state: what a processor needs to apply events exactly
// once, and what questions read. Each store has a folder below; all pass the conformance suite
// storetest.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxHistoryAge is the greatest age of a history on which an answer may be based. A plan that
// retains less than an earlier one is applied only when it has had a partition for longer, so that
// all who answer know of it by then.
const MaxHistoryAge = 400 * time.Millisecond

// ErrLayout is the cause of errors about a namespace that was made with another layout than wanted.
// Waiting does not help.
var ErrLayout = errors.New("the namespace has another layout")

// Store keeps the state of a namespace together with its progress: how far each of its shards has
// applied each partition. It is safe for concurrent use.
type Store interface {
	Reader
	Progress

	// Create makes the namespace if it does not exist. The error is an ErrLayout if the namespace
	// has another layout.
	Create(ctx context.Context) error
	// Shards is the number of shards of the state. It may change: what was claimed or read for another
	// number is then marked Behind, or refused.
	Shards() int
	// ShardOf is which of a number of shards an update is applied to.
	ShardOf(u *state.EntityUpdate, shards int) int
	// Bind adds to a plan, as definitions make it, the generations of series to keep, given the
	// existing state, and returns the history that this is based on.
	Bind(ctx context.Context, p *state.Plan) (*state.Plan, *state.History, error)
	// Register records that a group applies a plan, and returns the rivals that began later.
	Register(ctx context.Context, r state.Registration) ([]state.Rival, error)
	// Claim fences partitions for the plan of a version: batches of other plans no longer change
	// anything of them. It returns a claim for each partition. Partitions of plans to which this
	// one gives way, listed by version, are left to those.
	Claim(ctx context.Context, partitions []state.Partition, version string, givesWayTo ...string) ([]state.Claim, error)
	// Fills are those that a plan keeps completely. What a plan is the first to keep becomes a fill
	// when it is registered, and what the fill lacks of a partition is recorded when the plan
	// claims that.
	Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error)
	// Fillings reads the progress of a fill for each partition, by shard. Batches of the partition
	// that Fill.Partition names apply what is left, and move that progress.
	Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error)
	// StartFill sets where the filling of partitions starts, where that is not set; where it is
	// set, it raises the moment since which they are covered.
	StartFill(ctx context.Context, starts ...state.FillStart) error
	// Archives are those of the namespace.
	Archives(ctx context.Context) ([]*state.Archive, error)
	// AddArchive adds the files of a draft, those that the namespace does not know, to the archives of
	// its cut, see state.NewArchive.
	AddArchive(ctx context.Context, draft *state.Archive) error
	// BeginArchives records in all shards which archives a fill over a cut needs, all of the cut, and
	// returns its positions in each archive, by shard: how many rows it has. Batches of the partition
	// that Fill.Archive names apply the rest, and move these. A position with the log state.Moved
	// goes no further. The error is state.ErrLostArchive if shards know more archives of the cut.
	BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error)
	// Gap records that records of a partition were skipped whose timestamps go up to a moment, in
	// milliseconds.
	Gap(ctx context.Context, p state.Partition, until int64) error
	// PublishBusiest records the busiest entities of a processor, in place of what it published before. They
	// are forgotten unless it publishes them again within state.BusiestFor.
	PublishBusiest(ctx context.Context, processor string, b state.Busiest) error
	// Available is nil if a shard can be reached, as far as is known. It makes no request.
	Available(ctx context.Context, shard int) error
	// Snapshot reads the states of the reads into memory. Neither these nor those of its extensions
	// may be older than what Progress returns later.
	Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error)
	// NewWriter returns a writer for one goroutine.
	NewWriter() Writer
}

// Writer applies batches for one goroutine.
type Writer interface {
	// Apply applies a batch and moves the progress of its ranges, both in one step for each shard:
	// of a repeated batch, only what was not applied before is applied. It marks the ranges on
	// which the store went back in time or that another plan has claimed (Behind), and the shards
	// that it could not reach while it reached others (Lagging). An error means that the store
	// could not be reached or does not write; the same batch may then be applied again.
	Apply(ctx context.Context, b *state.Batch) error
}

// Progress is how far each shard has applied each partition, for callers that read it or move it
// without applying records.
type Progress interface {
	// Progress reads each partition's positions by shard.
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	// Place sets the progress of partitions to where applying has not led it, in those shards where
	// it is still as found before. It returns their number.
	Place(ctx context.Context, placements ...state.Placement) (int, error)
	// Log is the log with the tag of a position; zero if unknown.
	Log(ctx context.Context, tag string) (state.LogID, error)
}

// Reader reads the state that answers questions. It never writes.
type Reader interface {
	// Read answers all reads in one round trip; the answers are in the order of the reads. The
	// error of a single one is in its Err.
	Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error)
	// ReadOverlay answers all reads in one round trip as if a batch had just been applied, except
	// events that have arrived meanwhile and whose IDs are remembered. Without a batch it is
	// Read.
	ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error)
	// ReadReplica answers like ReadOverlay, but from replicas if some may answer, and says how old the
	// state may be.
	ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error)
	// Clock is the greatest timestamp of a record applied, in milliseconds; 0 if there is none.
	Clock(ctx context.Context) (int64, error)
	// History says which plans wrote the state; nil if the store keeps none, and all state is as
	// complete as its reader knows.
	History(ctx context.Context) (*state.History, error)
	// Busiest is what each processor has published lately; see Store.PublishBusiest.
	Busiest(ctx context.Context) ([]state.Busiest, error)
	// Applied says whether the record at an offset of a partition is in all state of the reads, or
	// in all state if there are no reads.
	Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error)
	// Recycle takes back the window states of a Read, ReadOverlay or ReadReplica for reuse: the
	// caller must not use them any more.
	Recycle(states []state.WindowState)
}

// Copies is the number of replicas of a master, and of those that lack something that was written.
type Copies struct {
	Master           string
	Replicas, Behind int
}
