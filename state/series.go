// Package state describes the state of entities: the series and logs of a plan, the mutations that events make, and the
// reads that questions make. Package state/packed packs state into bytes, and package store keeps it.
package state

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/weir-stream/weir/value"
)

// A series is the unit in which state is written and read: for each entity, one measure of the events of one stream
// that pass one filter, in tiles of one width. Features share a series that several need.

// Series describes one series. It is made when definitions are loaded, and immutable.
type Series struct {
	ID      string // 5 characters, a hash of what follows up to Tile
	Stream  string
	Where   string   // the filter in canonical form, empty for none
	By      []string // the entity's fields, see EntityFields
	Measure Measure
	Field   string     // empty for measures of events
	Type    value.Type // of the field; Timestamp for Earliest and Latest
	Scale   uint8      // of the field, for Decimal
	Tile    int64      // width of a tile in milliseconds; 0: one tile forever

	// Condition is the condition that CountHolds counts, in canonical form.
	Condition string
	// Quotient is, for one of the two terms of an average or a ratio, the field or the condition that both depend on. They
	// are shared with no other features, so that both count the same events: those since the same moment, of which the
	// same were dead letters.
	Quotient string
	// Per is the field whose values are the keys of Groups: events that lack it are skipped. It is
	// empty if the series is not kept by keys.
	Per string
	// Keys names how keys are made from the values of Per; if it is empty, the keys are the values' texts.
	Keys string

	// Group names the group: all series with the same By, which share one key for each entity.
	Group string
	// Parent is the Group of the first of several fields alone. The state of an entity is embedded in its parent's
	// state in that group while it is short. It is empty for entities of one field.
	Parent string
	// Keep is how far back questions may reach, in milliseconds before the newest record; 0 means forever. A series
	// that several features share keeps what the longest needs.
	Keep int64
	// GroupKeep is how long after a record was written questions may ask for its Group's state: the longest Keep plus
	// tile of the series. It is 0, forever, if any series is kept forever.
	GroupKeep int64
	// ParentKeep is the GroupKeep of Parent.
	ParentKeep int64
	// Max is a number, by layout: of values that LastSeen keeps of an entity, of events that its log keeps, of event
	// IDs, of values expected in a tile of Filters, or of keys that Groups answer with; 0 means no limit.
	Max int
	// Values is the number of values that Members keep of a tile; 0 means no limit.
	Values int
	// Tiles is the most tiles that an entity keeps; 0 if unknown.
	Tiles int
	// Bytes bounds the packed size of the series for one entity: beyond it less is kept, and answers say so. 0 means no
	// limit.
	Bytes int
	// GroupBytes bounds the packed size of all series of the Group that have Bytes, together. 0 means no limit.
	GroupBytes int
	// KeyBytes bounds the packed state of an entity, with all series of the Group and everything else in the key. 0
	// means no limit.
	KeyBytes int
	// Rate bounds the false positives in a tile of Filters.
	Rate float64
	// Cut decides which events count from the log; nil if all do. Other events count from files.
	Cut *Cut
}

// Layout returns how the series is stored.
func (s *Series) Layout() Layout {
	if s.Per != "" {
		return Groups
	}
	return s.Measure.Layout()
}

// Tag returns 24 bits that identify the series within its Group; the first byte is neither 0 nor 255. No two series of
// a group have the same tag.
func (s *Series) Tag() uint32 {
	hash := xxhash.Sum64String(s.ID)
	return uint32(1+hash>>16%254)<<16 | uint32(hash&0xffff)
}

// DamageTag is the tag of a section that notes which state of an entity could not be read. No series or group has it.
const DamageTag = 0xffffff

// EmbeddingTag returns 24 bits that identify a group's children in the key of their parent; the first byte is 255. No
// two groups that are embedded in the same group have the same tag.
func EmbeddingTag(group string) uint32 {
	return 0xff0000 | uint32(xxhash.Sum64String(group)&0xffff%0xffff)
}

// TileOf returns the index of the tile that contains the moment t, in milliseconds.
func (s *Series) TileOf(t int64) int64 {
	if s.Tile == 0 {
		return 0
	}
	return FloorDiv(t, s.Tile)
}

// EndOf returns the last moment of a tile, in milliseconds; MaxTime for a lifetime.
func (s *Series) EndOf(tile int64) int64 {
	if s.Tile == 0 {
		return MaxTime
	}
	return (tile+1)*s.Tile - 1
}

// Late reports whether a moment is no longer kept after a record of time now. It depends on nothing else, so a replay
// gets the same result.
func (s *Series) Late(t, now int64) bool {
	if s.Keep == 0 {
		return false
	}
	return s.TileOf(t) < s.Horizon(now)
}

// Horizon returns the first tile that is kept after a record of time now. For LastSeen, whose window is exact, a tile
// is one millisecond.
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

// Generation names one of the generations of a series. Its zero value is the first one.
type Generation struct {
	Number int
	Cut    string // the ID of its cut, see Cut; empty if the log feeds it with all events
}

// GenerationID returns the ID of a generation of a series.
func GenerationID(series string, g Generation) string {
	if g == (Generation{}) {
		return series
	}
	return hashed(fmt.Sprintf("generation 1\n%s %s\n", series, g), SeriesIDLength)
}

// String returns the number and, if there is a cut, a '/' and the cut.
func (g Generation) String() string {
	if g.Cut == "" {
		return strconv.Itoa(g.Number)
	}
	return strconv.Itoa(g.Number) + "/" + g.Cut
}

// MarshalText writes what String returns.
func (g Generation) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText parses what MarshalText writes.
func (g *Generation) UnmarshalText(text []byte) (err error) {
	number, cut, _ := strings.Cut(string(text), "/")
	g.Cut = cut
	g.Number, err = strconv.Atoi(number)
	return err
}

func compareGenerations(a, b Generation) int {
	return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Cut, b.Cut))
}
