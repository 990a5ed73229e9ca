// Package store is the contract of a store of state: a processor applies events exactly once to it, and questions read
// from it. Each store has a folder below; all pass the conformance suite storetest.
package store

import (
	"context"
	"errors"
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxHistoryAge is the greatest age of a history on which an answer may be based. A plan that keeps less than an
// earlier one is applied only after it has had a partition for longer, so that by then all servers know of it.
const MaxHistoryAge = 400 * time.Millisecond

// ErrLayout is wrapped by errors about a namespace that has another layout than wanted. Trying again does not help.
var ErrLayout = errors.New("the namespace has another layout")

// ErrNoNamespace is wrapped by errors about a namespace that nobody has made.
var ErrNoNamespace = errors.New("the namespace does not exist yet")

// ErrEvicts is wrapped by errors about servers that delete state when their memory is full. Trying again does not help.
var ErrEvicts = errors.New("state is deleted when the memory is full")

// Store keeps the state of a namespace together with its progress: how far each of its shards has
// applied each partition. It is safe for concurrent use.
type Store interface {
	Reader
	Progress

	// Create makes the namespace if it does not exist. The error is an ErrLayout if the namespace
	// has another layout.
	Create(ctx context.Context) error
	// Seal returns the key with which the namespace proves what it writes to topics. The namespace must have been made.
	Seal(ctx context.Context) (state.Seal, error)
	// Shards returns the number of shards of the state. It may change: calls that were prepared for another number are
	// then marked Behind, or refused.
	Shards() int
	// ShardOf returns which of a number of shards an update is applied to.
	ShardOf(u *state.EntityUpdate, shards int) int
	// Bind adds the generations to keep, given the existing state, to a plan that definitions made. It also returns the
	// history on which it decided.
	Bind(ctx context.Context, p *state.Plan) (*state.Plan, *state.History, error)
	// Register records that a group applies a plan, and returns the rivals that began later.
	Register(ctx context.Context, r state.Registration) ([]state.Rival, error)
	// Claim fences partitions for a plan: batches of other plans can no longer change their state. It returns a claim for each
	// partition.
	Claim(ctx context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error)
	// Fills returns the fills that a plan keeps completely. The columns that a plan is the first to keep become a fill
	// when it is registered; what the fill lacks of a partition is recorded when the plan claims the partition.
	Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error)
	// Fillings reads the progress of a fill for each partition, by shard. Batches of the partition that Fill.Partition
	// names apply the rest, and move that progress.
	Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error)
	// StartFill sets where the filling of partitions starts. If it is already set, StartFill only raises the time since
	// which they are covered.
	StartFill(ctx context.Context, starts ...state.FillStart) error
	// Archives returns the archives of the namespace.
	Archives(ctx context.Context) ([]*state.Archive, error)
	// AddArchive adds the files of a draft that the namespace does not know to the archives of its cut, see
	// state.NewArchive.
	AddArchive(ctx context.Context, draft *state.Archive) error
	// BeginArchives records in all shards the archives that a fill over a cut needs, all of the cut, and returns its
	// positions in each archive, by shard: how many rows are applied. Batches of the partition that Fill.Archive names
	// apply the rest, and move the positions. A position with the log state.Moved does not move any more. The error is
	// state.ErrLostArchive if shards know more archives of the cut.
	BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error)
	// Gap records that records of a partition were skipped, with timestamps up to a moment, in milliseconds.
	Gap(ctx context.Context, p state.Partition, until int64) error
	// PublishBusiest records the busiest entities of a processor, and replaces what it published before. They are
	// forgotten unless it publishes again within state.BusiestFor.
	PublishBusiest(ctx context.Context, processor string, b state.Busiest) error
	// Available returns nil if a shard can be reached, as far as is known. It makes no request.
	Available(ctx context.Context, shard int) error
	// Snapshot reads the states of the reads into memory. These states, and those of its extensions, must not be older
	// than the progress at the time of the call.
	Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error)
	// NewWriter returns a writer for one goroutine.
	NewWriter() Writer
}

// Writer applies batches for one goroutine.
type Writer interface {
	// Apply applies a batch and moves the progress of its ranges, both in one step for each shard. Of a repeated batch
	// it applies only what was not yet applied. It marks the ranges for which the store went back in time or that
	// another plan has claimed (Behind), and the shards that it could not reach while it reached others (Lagging). An
	// error means that the store could not be reached or refuses writes; the same batch may then be applied again.
	Apply(ctx context.Context, b *state.Batch) error
}

// Progress states how far each shard has applied each partition. It is for callers that read progress, or move it
// without applying records.
type Progress interface {
	// Progress reads each partition's positions by shard.
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	// Place sets the progress of partitions to positions that applying has not reached, in the shards in which it is
	// still as expected. It returns the number of positions set.
	Place(ctx context.Context, placements ...state.Placement) (int, error)
	// Log returns the log with the tag of a position; zero if unknown.
	Log(ctx context.Context, tag string) (state.LogID, error)
}

// Reader reads state for answers. It never writes.
type Reader interface {
	// Read answers all reads in one round trip; the answers are in the order of the reads. An error about one read is
	// in the Err of its window state.
	Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error)
	// ReadOverlay answers all reads in one round trip as if a batch had just been applied, except events that were
	// applied meanwhile and whose IDs are remembered: these it adds to the batch's Met. Without a batch it is Read.
	ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error)
	// ReadReplica answers like ReadOverlay, but from replicas if they are fresh enough, and returns how old the state
	// may be.
	ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error)
	// Clock returns the greatest timestamp of a record applied, in milliseconds; 0 if there is none.
	Clock(ctx context.Context) (int64, error)
	// History returns which plans wrote the state; nil if the store keeps no history.
	History(ctx context.Context) (*state.History, error)
	// Busiest returns what each processor has published lately; see Store.PublishBusiest.
	Busiest(ctx context.Context) ([]state.Busiest, error)
	// Applied reports whether the record at an offset of a partition is applied in the shards of all reads, or in all
	// shards if there are no reads.
	Applied(ctx context.Context, p state.Partition, offset int64, reads []state.Read) (bool, error)
	// Progress is that of Progress.
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	// Recycle takes back the window states of a Read, ReadOverlay or ReadReplica for reuse: the
	// caller must not use them any more.
	Recycle(states []state.WindowState)
}

// Copies counts the replicas of a master, and those that lack something that was written.
type Copies struct {
	Master           string
	Replicas, Behind int
}

// Known says how many replicas there are, if more than the master sees: those that are not connected are behind.
func (c *Copies) Known(replicas int) {
	if more := replicas - c.Replicas; more > 0 {
		c.Replicas, c.Behind = replicas, c.Behind+more
	}
}
