package kinds

// A state series is the unit in which state is written and read: one measure
// of the events of one stream that pass one filter, for each entity, in tiles
// of one width. Features that need the same series share it.

// State is how a series is laid out in the store.
type State uint8

// The state kinds.
const (
	Tiles    State = iota // a number for each tile
	Members               // values, each with the tiles in which it was met
	Sketches              // a HyperLogLog for each tile
	LastSeen              // values, each with the time it was last met
	Logs                  // the events themselves, for exact windows; see Log
)

// Measure is what a series keeps of an event.
type Measure uint8

// The measures.
const (
	CountEvents Measure = iota // +1 for every event
	CountValues                // +1 for every event whose field is not null
	Sum                        // adds the field: exact for Int and Decimal
	Min                        // the least value of the field
	Max                        // the greatest value of the field
	Distinct                   // the set of the field's values
	Approx                     // the field's values in a HyperLogLog
	Touch                      // the field's values with their last event time
	Record                     // the columns of the event
)

// measures describes every Measure; the name is part of a series' identity
// and must never change.
var measures = [...]struct {
	name  string
	state State
}{
	CountEvents: {"count", Tiles},
	CountValues: {"count_values", Tiles},
	Sum:         {"sum", Tiles},
	Min:         {"min", Tiles},
	Max:         {"max", Tiles},
	Distinct:    {"distinct", Members},
	Approx:      {"approx", Sketches},
	Touch:       {"touch", LastSeen},
	Record:      {"record", Logs},
}

// String is the measure's name.
func (m Measure) String() string { return measures[m].name }

// State is the layout in which the measure is kept.
func (m Measure) State() State { return measures[m].state }

// Series describes one state series. It is made once, when definitions are
// loaded, and never changed.
type Series struct {
	ID      string // 5 characters, a hash of what follows up to Tile
	Stream  string
	Where   string   // the filter in canonical form, empty for none
	By      []string // the entity's fields, sorted
	Measure Measure
	Field   string // empty for CountEvents
	Type    Type   // of the field
	Scale   uint8  // of the field, for Decimal
	Tile    int64  // width of a tile in milliseconds; 0: one tile for ever

	// Group names the entity's hash that holds this series' tiles: all tiled
	// series with the same By, those kept for ever apart from the others.
	Group string
	// Keep is how far back, in milliseconds before the newest record, state
	// can still be asked for; 0 is for ever. A series that several features
	// share keeps what the longest needs.
	Keep int64
	// GroupKeep is the longest Keep plus tile of the Group's series, 0 for ever.
	GroupKeep int64
	// GroupTiles is the number of tiles that all series of the Group together
	// keep of one entity at the most, 0 where that is not known.
	GroupTiles int
	// Max is the number of values that LastSeen keeps of an entity, or of events
	// that its log does.
	Max int
}

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
