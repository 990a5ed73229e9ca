package extsort

// Batch holds items, in the order in which they are added to a Sorter.
type Batch struct {
	data          []byte // the items, each after its head
	items         int
	first, latest Key  // of the items added first and last
	unordered     bool // some item comes before one added earlier
}

// Add adds an item; its data is copied.
func (b *Batch) Add(key Key, data []byte) {
	if b.items == 0 {
		b.first = key
	} else if key.Compare(b.latest) < 0 {
		b.unordered = true
	}
	b.data = append(appendHead(b.data, key, len(data)), data...)
	b.latest = key
	b.items++
}

// Reset removes all items, and keeps their memory.
func (b *Batch) Reset() { *b = Batch{data: b.data[:0]} }
