package state

import "context"

// Snapshot is the state of some entities as of one moment, in memory. Events are added to it in the way the store will
// apply them; the store does not change. A snapshot is not safe for concurrent use.
type Snapshot interface {
	// Add applies an event of a batch to an entity.
	Add(b *Batch, u *EntityUpdate)
	// Read answers a read of a state that the snapshot holds. The answer is valid until
	// the next Add.
	Read(r *Read) WindowState
	// Copy copies the state that reads ask for, all of which the snapshot holds. The copy and the original change
	// independently.
	Copy(reads []Read) Snapshot
	// Extend adds the state that further reads ask for, as the store holds it now. State that the snapshot already
	// holds stays as it is. After an error of the store the whole snapshot is unusable.
	Extend(ctx context.Context, reads []Read) error
}
