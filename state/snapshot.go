package state

import "context"

// Snapshot is the state of some entities as of one moment, in memory. Events are added to it as the
// store will apply them; the store does not change. It serves one goroutine.
type Snapshot interface {
	// Add applies an event of a batch to an entity.
	Add(b *Batch, t *EntityUpdate)
	// Read answers a read of a state that the snapshot holds. The answer is valid until
	// the next Add.
	Read(r *Read) WindowState
	// Copy copies the states that reads look at, all of which the snapshot holds. The
	// copy and the original change independently.
	Copy(reads []Read) Snapshot
	// Extend adds the states that further reads look at, as the store holds them now.
	// States that the snapshot holds already stay as they are. After an error of the
	// store the whole snapshot is unusable.
	Extend(ctx context.Context, reads []Read) error
}
