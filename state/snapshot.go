package state

import "context"

// Snapshot is what a store holds of some entities at one moment, and what it
// will hold as more events are applied, which are added in memory and nowhere
// else. It serves one goroutine.
type Snapshot interface {
	// Add adds what an event of a batch does to an entity.
	Add(b *Batch, t *EntityUpdate)
	// Read answers a read of a series and an entity that are followed. The slice
	// holds until the next Add.
	Read(r *Read) WindowState
	// Copy is what reads look at, all of it followed, as it is now; what is added
	// to the one is not to the other.
	Copy(reads []Read) Snapshot
	// Extend follows also what further reads look at, as the store holds it now.
	// What is followed already stays as it is. The error is that of the store;
	// nothing of what is followed is of use then.
	Extend(ctx context.Context, reads []Read) error
}
