package kinds

// Following is what a store holds of some entities at one moment, and what it
// will hold as more events are applied, which are added in memory and nowhere
// else. It serves one goroutine.
type Following interface {
	// Add adds what an event of a batch does to an entity.
	Add(b *Batch, t *Touched)
	// Read answers a read of a series and an entity that are followed. The slice
	// holds until the next Add.
	Read(r *Read) Slice
}
