// Package state describes what is kept of an entity: the series and logs of a plan, the
// mutations that events become, and what questions read. How it is packed into bytes is
// in state/packed, where it is kept in store.
package state

import (
	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/value"
)

// A state series is the unit in which state is written and read: one measure
// of the events of one stream that pass one filter, for each entity, in tiles
// of one width. Features that need the same series share it.

// Series describes one state series. It is made once, when definitions are
// loaded, and never changed.
type Series struct {
	ID      string // 5 characters, a hash of what follows up to Tile
	Stream  string
	Where   string   // the filter in canonical form, empty for none
	By      []string // the entity's fields, see EntityFields
	Measure Measure
	Field   string     // empty for measures of events
	Type    value.Type // of the field; Timestamp for Earliest and Latest
	Scale   uint8      // of the field, for Decimal
	Tile    int64      // width of a tile in milliseconds; 0: one tile for ever

	// Condition is what must hold of an event for CountHolds, in canonical form.
	Condition string
	// Per is the field whose values are the keys of Groups: events that lack it
	// are passed over. It is empty for what is not kept by keys.
	Per string
	// Keys names how keys are made of the values of Per; empty: as their texts.
	Keys string

	// Group names what all series with the same By are kept in of an entity.
	Group string
	// Parent is the Group by the first field of several alone: while the state of an entity is
	// short it is embedded in what that group keeps of the entity's parent. Empty for
	// entities of one field.
	Parent string
	// Keep is how far back, in milliseconds before the newest record, state
	// can still be asked for; 0 is for ever. A series that several features
	// share keeps what the longest needs.
	Keep int64
	// GroupKeep is for how long after a record was written its Group's state may be
	// asked for: the longest Keep plus tile of the series and how far their events may
	// lie in the future. 0 is for ever, as it is where any of them keeps for ever.
	GroupKeep int64
	// ParentKeep is the GroupKeep of Parent.
	ParentKeep int64
	// Max is the number of values that LastSeen keeps of an entity, of events that
	// its log does, of identities, of values that are expected in a tile of Filters,
	// or of keys that Groups answer with, 0 being no limit.
	Max int
	// Values is the number of values that Members keep of a tile; 0 is no limit.
	Values int
	// Tiles is the greatest number of tiles that are kept of an entity; 0 where it
	// is not known.
	Tiles int
	// Bytes is how long what is packed of an entity may be: where it would be longer,
	// less is kept, and answers say so. 0 is no limit.
	Bytes int
	// GroupBytes is how long what is packed of all series of the Group may be together
	// that have Bytes, however many they are. 0 is no limit.
	GroupBytes int
	// Rate is that of false positives in a tile of Filters, at the most.
	Rate float64
}

// Layout is how the series is laid out in the store.
func (s *Series) Layout() Layout {
	if s.Per != "" {
		return Groups
	}
	return s.Measure.Layout()
}

// Tag is 24 bits by which the series is found in what its Group keeps of an
// entity; their first byte is neither 0 nor 255. No two series of a group have the same.
func (s *Series) Tag() uint32 {
	hash := xxhash.Sum64String(s.ID)
	return uint32(1+hash>>16%254)<<16 | uint32(hash&0xffff)
}

// EmbeddingTag is 24 bits by which what a group keeps of children is found in the key
// of their parent; their first byte is 255. No two groups embedded in one have the same.
func EmbeddingTag(group string) uint32 { return 0xff0000 | uint32(xxhash.Sum64String(group)&0xffff) }

// TileOf is the index of the tile that holds the moment t, in milliseconds.
func (s *Series) TileOf(t int64) int64 {
	if s.Tile == 0 {
		return 0
	}
	return FloorDiv(t, s.Tile)
}

// Late says whether a moment is no longer kept once a record of time now has
// been seen. It depends on nothing else, so a replay decides the same.
func (s *Series) Late(t, now int64) bool {
	if s.Keep == 0 {
		return false
	}
	return s.TileOf(t) < s.Horizon(now)
}

// Horizon is the first tile that is kept once a record of time now has been
// seen. For LastSeen, whose edge is exact, a tile is one millisecond.
func (s *Series) Horizon(now int64) int64 {
	return FloorDiv(now-s.Keep, s.Tile)
}

// FloorDiv is a/b rounded towards minus infinity, for b > 0.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
