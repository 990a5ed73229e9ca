package kinds

// Read is what a question wants of one series of one entity.
type Read struct {
	Series *Series
	Entity string // the entity's text
	// First and Last are the tiles wanted, both included. For LastSeen a tile
	// is one millisecond.
	First, Last int64
}

// Slice is what a series holds of one entity in the tiles wanted.
type Slice struct {
	Cells   []Cell   // Tiles: those that hold something, by rising tile
	Members []string // Members: the values met, in no order
	// Count is, for Sketches, the estimated number of distinct values and, for
	// LastSeen, the number of values last met in the tiles wanted.
	Count int64
	// After is, for LastSeen, the number of values met again after the last
	// tile wanted: whether they were met in the tiles wanted too is not known.
	After int64
	Log   Log // Logs: the whole log
	// Capped says that LastSeen keeps as many values as it may: others may have
	// been put out.
	Capped bool
}

// Cell is the content of one tile: an Int for CountEvents and CountValues, a
// value of the field's type for the others.
type Cell struct {
	Tile  int64
	Value Value
}

// Empty says whether the slice holds nothing.
func (s *Slice) Empty() bool {
	return len(s.Cells) == 0 && len(s.Members) == 0 && len(s.Log) == 0 && s.Count == 0 && s.After == 0
}
