package state

import (
	"errors"

	"github.com/weir-stream/weir/value"
)

// ErrUnavailable is what errors are about a part of the store that cannot be
// reached now, while others can.
var ErrUnavailable = errors.New("this part of the store cannot be reached")

// Read is what a question wants of one series of one entity.
type Read struct {
	Series *Series
	Entity string // the entity's text
	// First and Last are the tiles wanted, both included. For LastSeen a tile
	// is one millisecond.
	First, Last int64
	// Total says that one bucket with what all tiles wanted hold together will do:
	// their sum, or the least or the greatest of them. A store may give the tiles.
	Total bool
}

// WindowState is what a series holds of one entity in the tiles wanted.
type WindowState struct {
	// Buckets are, for Tiles and Extremes, those that hold something, by rising tile; for
	// Read.Total perhaps one for all.
	Buckets []Bucket
	Members []string // Members: the values met, in no order
	// Bound is, for Members, the hash from which on some values of the tiles wanted
	// are not kept: of those below it all are there. It is 0 where all are.
	Bound uint64
	// StandardError is the relative standard error of Count for Sketches.
	StandardError float64
	// Count is, for Sketches, the estimated number of distinct values, for
	// LastSeen the number of values last met in the tiles wanted, and for
	// Identities that of identities.
	Count int64
	// After is, for LastSeen, the number of values met again after the last
	// tile wanted: whether they were met in the tiles wanted too is not known.
	After int64
	Log   Log // Logs: the whole log
	// Filter is, for Filters, what was met in the tiles wanted; nil for nothing.
	Filter Filter
	// Moments are, for Spreads, those of all values in the tiles wanted.
	Moments Moments
	// Groups are what Groups hold under each key that has something in the tiles
	// wanted, by rising key. Of more than Series.Max keys there are as many and
	// one or more others: the first ones are complete.
	Groups []Group
	// Capped says that LastSeen keeps as many values as it may: others may have
	// been put out; and of Groups that some keys were dropped for their bytes: the
	// others are complete.
	Capped bool
	// LostUntil is the greatest timestamp, in ms, of a record of which the slice may
	// lack what it did, because an operator has dropped damaged state; nil for none.
	LostUntil *int64
	// Err is why nothing is known of the slice, nil where it was read: its key is
	// damaged, or it is an ErrUnavailable. Nothing else is set with it.
	Err error
}

// Group is what is held under one key.
type Group struct {
	Key string
	WindowState
}

// Bucket is the content of one tile: an Int for counts, a Timestamp for Earliest
// and Latest, a value of the field's type for the others.
type Bucket struct {
	Tile  int64
	Value value.Value
}

// Unite is what a series holds of several entities together. Logs, which have
// edges of their own, are not united, and neither are estimates and LastSeen,
// which hold numbers and not what they counted.
func Unite(slices []WindowState) WindowState {
	var all WindowState
	met := map[string]bool{}
	for i := range slices {
		all.Buckets = append(all.Buckets, slices[i].Buckets...)
		if b := slices[i].Bound; b > 0 && (all.Bound == 0 || b < all.Bound) {
			all.Bound = b
		}
		for _, member := range slices[i].Members {
			if !met[member] {
				met[member] = true
				all.Members = append(all.Members, member)
			}
		}
	}
	return all
}

// Empty says whether the slice holds nothing.
func (s *WindowState) Empty() bool {
	return len(s.Buckets) == 0 && len(s.Members) == 0 && len(s.Log) == 0 && s.Filter == nil && s.Count == 0 && s.After == 0 &&
		s.Moments.N == 0 && len(s.Groups) == 0
}
