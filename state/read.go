package state

import (
	"errors"
	"slices"

	"github.com/weir-stream/weir/value"
)

// ErrUnavailable is wrapped by errors about a part of the store that cannot be reached now, while others can.
var ErrUnavailable = errors.New("this part of the store cannot be reached")

// Read is what a question needs of one series of one entity.
type Read struct {
	Series *Series
	Entity string // the entity's text
	// First and Last are the tiles wanted, inclusive. For LastSeen a tile is one millisecond.
	First, Last int64
	// Total means that one bucket with the total of all tiles is enough: their sum, their least or their greatest. A
	// store may still return the tiles.
	Total bool
	// Stored means that pending events do not count.
	Stored bool
}

// WindowState is what a series holds of one entity in the tiles wanted.
type WindowState struct {
	// First what every answer looks at, which then is in one cache line.

	// Buckets are, for Tiles and Extremes, the non-empty ones by ascending tile. For Read.Total there may be one for
	// all tiles.
	Buckets []Bucket
	// Err is why the window state is unknown: its key is damaged, or it is an ErrUnavailable. It is nil if the state
	// was read. No other field is set with it.
	Err error
	// LostUntil is the greatest timestamp, in ms, of a record whose effect the window state may lack, because state was
	// dropped; nil if there is none.
	LostUntil *int64
	// Capped means that Groups dropped some keys to save bytes: Before and all keys after it. Those before it are complete.
	Capped bool
	// AtEnd is whether the last tile wanted has content, for Members, Sketches, Filters and Moments; see Reaches.
	AtEnd   bool
	Members []string // Members: the values in the tiles, in no order
	// Secret is, for Members and Logs, that with which values are hashed.
	Secret Secret
	// Bound is, for Members, the least hash of which values of the tiles may be missing: below it all are there. It is
	// 0 if none are missing.
	Bound uint64
	// StandardError is the relative standard error of Count for Sketches.
	StandardError float64
	// Count is the estimated number of distinct values for Sketches, for LastSeen the number of values whose last event
	// is in the tiles, and the number of event IDs for DedupSet.
	Count int64
	// After is, for LastSeen, the number of values with an event after the last tile: it is unknown whether they also
	// had one in the tiles wanted.
	After int64
	Log   Log // Logs: the whole log
	// Filter is, for Filters, the values in the tiles; nil if there are none.
	Filter Filter
	// Moments are, for MomentTiles, the moments of all values in the tiles.
	Moments Moments
	// Groups are, for Groups, the keys with content in the tiles, ascending. If there are more than Series.Max keys, it
	// has the first Max keys, which are complete, and at least one further key.
	Groups []Group
	// Before is, if the state is Capped, the first key that was dropped.
	Before string
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

// Unite merges the window states of a series for several entities. It does not unite logs, whose windows have their own
// bounds, nor estimates and LastSeen, which hold only numbers.
func Unite(states []WindowState) WindowState {
	var all WindowState
	met := map[string]bool{}
	for i := range states {
		if len(states[i].Members) > 0 { // others may have been read from nothing, so without a secret
			all.Secret = states[i].Secret
		}
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

// Reaches reports whether the window state has content of the last tile wanted. It does not tell for Logs and LastSeen,
// which have times.
func (s *WindowState) Reaches(last int64) bool {
	n := len(s.Buckets)
	return s.AtEnd || n > 0 && s.Buckets[n-1].Tile >= last ||
		slices.ContainsFunc(s.Groups, func(g Group) bool { return g.Reaches(last) })
}

// Empty reports whether the window state is empty.
func (s *WindowState) Empty() bool {
	return len(s.Buckets) == 0 && len(s.Members) == 0 && len(s.Log) == 0 && s.Filter == nil && s.Count == 0 && s.After == 0 &&
		s.Moments.N == 0 && len(s.Groups) == 0
}
