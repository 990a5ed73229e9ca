// Package window holds the types of windows, their tiles, calendars and durations.
package window

import (
	"fmt"
	"sort"
	"time"

	"github.com/weir-stream/weir/state"
)

// Window is the stretch of event time that a feature looks at.
type Window struct {
	// Type is how it begins; nil is a lifetime.
	Type Type
	// Last is the number of latest events that count; 0 means all.
	Last int
	// Exclude leaves out the event being scored.
	Exclude Exclusion
	// Tile is the width of its tiles as defined; 0 for a lifetime, and for Exact.
	Tile time.Duration
	// Exact windows are cut to the millisecond, out of the entity's log.
	Exact bool
	// ClosedLeft and OpenRight invert the edges of an exact window, which by default excludes its
	// left edge and includes its right one.
	ClosedLeft, OpenRight bool
	// Delay is how long before the moment of the question the window ends.
	Delay time.Duration
}

// Type determines where a window begins. Each type has a file of its own, and is either Clocked or Opened.
type Type interface {
	// String returns the type in one line: 7d, calendar day tz Asia/Shanghai.
	String() string
	// Reach returns how far before a moment the events lie that can determine the window at that moment; 0 means
	// without bound.
	Reach() time.Duration
}

// Clocked types begin by the clock, independent of events, so tiles can answer for them.
type Clocked interface {
	Type
	// begin returns the first millisecond of the window that ends with the tile of the moment at; an exact window has
	// tiles of one millisecond.
	begin(at, tile int64) int64
	// DefaultTile returns the tile width if none is chosen, 0 for none.
	DefaultTile() time.Duration
	// CheckTile returns what is wrong with a tile width, or nil.
	CheckTile(tile time.Duration) error
}

// Opened types begin with an event, so only the log can answer for them.
type Opened interface {
	Type
	// Open returns the first millisecond of the window at a moment, given the ascending times of all events of the
	// entity since a time, which is Reach before the moment or later. If no window is open, it returns the end of the
	// last one. Only events since coveredSince determine the result. If sure is false, events before since might have
	// moved the beginning.
	Open(at, since int64, times []int64) (from, coveredSince int64, sure bool)
}

// Exclusion is what a window leaves out around the event being scored, which is the entity's newest event in the stream
// at the moment of the question.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNothing     Exclusion = iota
	ExcludeCurrent               // the event
	ExcludeCurrentTime           // all events of its millisecond
)

// Exclusions are the names of the Exclusions.
var Exclusions = []string{ExcludeNothing: "", ExcludeCurrent: "current", ExcludeCurrentTime: "current_time"}

// String returns the exclusion as definitions write it.
func (e Exclusion) String() string { return Exclusions[e] }

// BoundsByName maps the notations of an exact window's edges.
var BoundsByName = map[string]struct{ ClosedLeft, OpenRight bool }{
	"(]": {}, "[]": {ClosedLeft: true}, "[)": {ClosedLeft: true, OpenRight: true}, "()": {OpenRight: true},
}

// DefaultBounds are the edges of an exact window that names none.
const DefaultBounds = "(]"

// Brackets returns the notation of the window's edges.
func (w *Window) Brackets() string {
	for text, edges := range BoundsByName {
		if edges.ClosedLeft == w.ClosedLeft && edges.OpenRight == w.OpenRight {
			return text
		}
	}
	return DefaultBounds
}

// TypeOrLifetime returns the window's type, which may be a lifetime.
func (w *Window) TypeOrLifetime() Type {
	if w.Type == nil {
		return lifetime{}
	}
	return w.Type
}

// String returns the window in one line, without its options. It has a value receiver, so that %s formats a Window like
// a pointer to one.
func (w Window) String() string {
	switch typ := w.TypeOrLifetime().(type) {
	case lifetime:
		if w.Last > 0 {
			return fmt.Sprintf("last %d", w.Last)
		}
		return typ.String()
	case Rolling:
		if w.Last > 0 {
			return fmt.Sprintf("rolling %s last %d", typ, w.Last)
		}
		return typ.String()
	default:
		if w.Last > 0 {
			return fmt.Sprintf("%s last %d", typ, w.Last)
		}
		return typ.String()
	}
}

// Tiled reports whether the window begins with a tile; otherwise its edge is exact to the millisecond, or it has none.
func (w *Window) Tiled() bool { return w.Tile > time.Millisecond }

// Forgets reports whether the window looks back for a limited time.
func (w *Window) Forgets() bool { return w.TypeOrLifetime().Reach() > 0 }

// ByEvents reports whether events determine the window, so that the log must hold all events of the entity, and not
// only those that pass the feature's filter.
func (w *Window) ByEvents() bool {
	_, opens := w.Type.(Opened)
	return opens || w.Last > 0 || w.Exclude != ExcludeNothing
}

// NeedsLog names what of the window only the log can answer, empty for nothing.
func (w *Window) NeedsLog() string {
	switch w.Type.(type) {
	case Fixed:
		return "a fixed window"
	case Session:
		return "a session window"
	}
	if w.Last > 0 {
		return fmt.Sprintf("last %d", w.Last)
	}
	return ""
}

// Tiles returns the first and the last tile of the window at a moment, which already has the delay subtracted. The tiles of a
// series that stands in for the feature's own may be of another width: the first is then the one in which the window begins.
func (w *Window) Tiles(s *state.Series, at int64) (first, last int64) {
	if s.Tile == 0 {
		return 0, 0
	}
	return s.TileOf(w.begins(s, at)), s.TileOf(at)
}

// begins returns the first millisecond of the window at a moment, which already has the delay subtracted.
func (w *Window) begins(s *state.Series, at int64) int64 {
	switch c, ok := w.TypeOrLifetime().(Clocked); {
	case !ok:
		return at - w.Type.Reach().Milliseconds()
	case w.Tile > 0:
		return c.begin(at, w.Tile.Milliseconds())
	default:
		return c.begin(at, s.Tile)
	}
}

// Exceeds reports whether the tiles at a moment have more than those of the window, as tiles of another width may that stand in
// for the feature's own: the first one begins before the window, or the last one has events that the delay leaves out.
func (w *Window) Exceeds(s *state.Series, at int64) bool {
	if s.Tile == 0 || !w.Forgets() {
		return false
	}
	at -= w.Delay.Milliseconds()
	if begins := w.begins(s, at); s.TileOf(begins)*s.Tile < begins {
		return true
	}
	own := state.Series{Tile: w.Tile.Milliseconds()}
	return w.Delay > 0 && s.EndOf(s.TileOf(at)) > own.EndOf(own.TileOf(at))
}

// TileCount returns the greatest number of the window's tiles.
func (w *Window) TileCount() int64 {
	if w.Tile == 0 {
		return 1
	}
	return max(1, int64((w.TypeOrLifetime().Reach()+w.Tile-1)/w.Tile))
}

// Covers returns the event times that a window in tiles covers at a moment. The last tile may hold
// events after the moment: To then includes them. From is state.MinTime for a lifetime.
func (w *Window) Covers(s *state.Series, at, now int64) (from, to int64) {
	at -= w.Delay.Milliseconds()
	first, last := w.Tiles(s, at)
	if from = state.MinTime; w.Forgets() {
		from = first * s.Tile
	}
	if s.Tile == 0 {
		return from, max(at, now)
	}
	return from, max(at, min((last+1)*s.Tile-1, now))
}

// Edges returns the first and the last millisecond of the events that an exact window may hold at a moment.
func (w *Window) Edges(at int64) (from, to int64) {
	to = at - w.Delay.Milliseconds()
	switch typ := w.TypeOrLifetime().(type) {
	case Clocked:
		from = typ.begin(to, 1)
		if w.ClosedLeft && w.Forgets() {
			from--
		}
	default:
		from = to - typ.Reach().Milliseconds() + 1
	}
	if w.OpenRight {
		to--
	}
	return from, to
}

// Past returns the first moment at which the window begins at a time or later, both in ms. This remains so, because
// windows only move forward. ok is false for a lifetime, which begins before any time.
func (w *Window) Past(s *state.Series, since int64) (at int64, ok bool) {
	if !w.Forgets() {
		return 0, false
	}
	begins := func(at int64) int64 {
		if w.Exact {
			from, _ := w.Edges(at)
			return from
		}
		from, _ := w.Covers(s, at, at)
		return from
	}
	earliest := since + w.Delay.Milliseconds()
	latest := w.Type.Reach().Milliseconds() + max(w.Tile.Milliseconds(), s.Tile) + 1 // after that
	return earliest + int64(sort.Search(int(latest), func(n int) bool { return begins(earliest+int64(n)) >= since })), true
}

// LeastMax returns how many events the log must keep for the window's Last.
func (w *Window) LeastMax() int {
	if w.Last > 0 && w.Exclude != ExcludeNothing {
		return w.Last + 1
	}
	return w.Last
}
