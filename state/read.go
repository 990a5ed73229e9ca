package state

import (
	"errors"

	"github.com/weir-stream/weir/value"
)

// ErrUnavailable is the cause of errors about a part of the store that cannot be reached now, while
// others can.
var ErrUnavailable = errors.New("this part of the store cannot be reached")

// Read is what a question needs of one series of one entity.
type Read struct {
	Series *Series
	Entity string // the entity's text
	// First and Last are the tiles wanted, inclusive. For LastSeen a tile is one millisecond.
	First, Last int64
	// Total says that one bucket with the total of all tiles is enough: their sum, or the least or
	// the greatest of them. A store may return the tiles nonetheless.
	Total bool
}

// WindowState is what a series holds of one entity in the tiles wanted.
type WindowState struct {
	// Buckets are, for Tiles and Extremes, the non-empty ones, by ascending tile; for Read.Total
	// perhaps one for all.
	Buckets []Bucket
	Members []string // Members: the values met, in no order
	// Bound is, for Members, the hash at and above which some values of the tiles are missing;
	// below it all are there. It is 0 if none are missing.
	Bound uint64
	// StandardError is the relative standard error of Count for Sketches.
	StandardError float64
	// Count is the estimated number of distinct values for Sketches, the number of values last met
	// in the tiles for LastSeen, and the number of event IDs for DedupSet.
	Count int64
	// After is, for LastSeen, the number of values met again after the last tile: it is unknown
	// whether they were also met in the tiles wanted.
	After int64
	Log   Log // Logs: the whole log
	// Filter is, for Filters, what was met in the tiles; nil for nothing.
	Filter Filter
	// Moments are, for MomentTiles, those of all values in the tiles.
	Moments Moments
	// Groups are what Groups hold under each key with content in the tiles, by ascending key. If
	// there are more than Series.Max keys, it has the first Max keys, which are complete, and at
	// least one further key.
	Groups []Group
	// Capped says that Groups dropped some keys to save bytes; the remaining ones are complete.
	Capped bool
	// LostUntil is the greatest timestamp, in ms, of a record whose effect the window state may
	// lack, because an operator dropped damaged state; nil for none.
	LostUntil *int64
	// Err is why nothing is known of the window state, nil if it was read: its key is damaged, or
	// it is an ErrUnavailable. No other field is set with it.
	Err error
}

// Group is the content of one key.
type Group struct {
	Key string
	WindowState
}

// Bucket is the content of one tile: an Int for counts, a Timestamp for Earliest and Latest, a
// value of the field's type otherwise.
type Bucket struct {
	Tile  int64
	Value value.Value
}

// Unite merges what a series holds of several entities. It does not unite logs, whose windows have
// edges of their own, nor estimates and LastSeen, which hold numbers and not what they counted.
func Unite(states []WindowState) WindowState {
	var all WindowState
	met := map[string]bool{}
	for i := range states {
		all.Buckets = append(all.Buckets, states[i].Buckets...)
		if b := states[i].Bound; b > 0 && (all.Bound == 0 || b < all.Bound) {
			all.Bound = b
		}
		for _, member := range states[i].Members {
			if !met[member] {
				met[member] = true
				all.Members = append(all.Members, member)
			}
		}
	}
	return all
}

// Empty says whether the window state holds nothing.
func (s *WindowState) Empty() bool {
	return len(s.Buckets) == 0 && len(s.Members) == 0 && len(s.Log) == 0 && s.Filter == nil && s.Count == 0 && s.After == 0 &&
		s.Moments.N == 0 && len(s.Groups) == 0
}
