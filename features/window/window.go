// Package window holds the forms of windows, their tiles and calendars, and durations.
package window

import (
	"fmt"
	"time"

	"github.com/weir-stream/weir/state"
)

// Window is the stretch of event time that a feature looks at.
type Window struct {
	// Form is how it begins; nil is a lifetime, all there ever was.
	Form Form
	// Last leaves only so many events of it, the latest; 0 leaves all.
	Last int
	// Exclude leaves out the event being scored.
	Exclude Exclusion
	// Tile is the width of its tiles; 0 for a lifetime, and for Exact.
	Tile time.Duration
	// Exact windows are cut to the millisecond, out of the entity's log.
	Exact bool
	// ClosedLeft and OpenRight turn the edges of an exact window round, which
	// by default leaves out its left one and has its right one.
	ClosedLeft, OpenRight bool
	// Delay is by how much the window ends before the moment asked for.
	Delay time.Duration
}

// Form is what tells where a window begins. Every form has a file of its own;
// it is clocked or opened.
type Form interface {
	// String is the form in one line: 7d, calendar day tz Asia/Shanghai.
	String() string
	// Reach is how far before a moment the events may lie that tell the window at
	// that moment; 0 is without bound.
	Reach() time.Duration
}

// Clocked forms begin by the clock, whatever the events, so that tiles can
// answer for them.
type Clocked interface {
	Form
	// begin is the first millisecond of the window that ends with the tile of the
	// moment at; an exact one has tiles of one millisecond.
	begin(at, tile int64) int64
	// DefaultTile is the width of tiles where none is chosen, 0 for none.
	DefaultTile() time.Duration
	// CheckTile says what is wrong with a width, nil for nothing.
	CheckTile(tile time.Duration) error
}

// Opened forms begin with an event, so that only the log can answer for them.
type Opened interface {
	Form
	// Open is the first millisecond of the window at a moment, of the rising times
	// of all events of the entity since a time, which is Reach before the moment
	// or later. If no window is open, it is where the last one ended. It is told by
	// events from the time told on: others before that would not have moved it. Not
	// sure is a window that events from before since would have begun elsewhere.
	Open(at, since int64, times []int64) (from, told int64, sure bool)
}

// Exclusion is what a window leaves out around the event being scored: the
// newest of the entity's events in the stream at the moment asked for.
type Exclusion uint8

// The exclusions.
const (
	ExcludeNothing     Exclusion = iota
	ExcludeCurrent               // the event
	ExcludeCurrentTime           // all events of its millisecond
)

// Exclusions are the names of the Exclusions.
var Exclusions = []string{ExcludeNothing: "", ExcludeCurrent: "current", ExcludeCurrentTime: "current_time"}

// String is the exclusion as definitions write it.
func (e Exclusion) String() string { return Exclusions[e] }

// BoundsByName are the ways to write the edges of an exact window.
var BoundsByName = map[string]struct{ ClosedLeft, OpenRight bool }{
	"(]": {}, "[]": {ClosedLeft: true}, "[)": {ClosedLeft: true, OpenRight: true}, "()": {OpenRight: true},
}

// DefaultBounds are the edges of an exact window that names none.
const DefaultBounds = "(]"

// Brackets is how the window's edges are written.
func (w *Window) Brackets() string {
	for text, edges := range BoundsByName {
		if edges.ClosedLeft == w.ClosedLeft && edges.OpenRight == w.OpenRight {
			return text
		}
	}
	return DefaultBounds
}

// FormOrLifetime is the window's, that of a lifetime among them.
func (w *Window) FormOrLifetime() Form {
	if w.Form == nil {
		return lifetime{}
	}
	return w.Form
}

// String is the window in one line, without its options. It is a value's, so that
// %s writes a Window as it does a pointer to one.
func (w Window) String() string {
	switch form := w.FormOrLifetime().(type) {
	case lifetime:
		if w.Last > 0 {
			return fmt.Sprintf("last %d", w.Last)
		}
		return form.String()
	case Rolling:
		if w.Last > 0 {
			return fmt.Sprintf("rolling %s last %d", form, w.Last)
		}
		return form.String()
	default:
		if w.Last > 0 {
			return fmt.Sprintf("%s last %d", form, w.Last)
		}
		return form.String()
	}
}

// Tiled says whether the window begins with a tile; if not, its edge is exact
// to the millisecond or it has none.
func (w *Window) Tiled() bool { return w.Tile > time.Millisecond }

// Forgets says whether the window looks back only so far.
func (w *Window) Forgets() bool { return w.FormOrLifetime().Reach() > 0 }

// ByEvents says whether the events tell the window, so that all of the entity's
// must be in the log, whatever the feature's filter takes.
func (w *Window) ByEvents() bool {
	_, opens := w.Form.(Opened)
	return opens || w.Last > 0 || w.Exclude != ExcludeNothing
}

// NeedsLog names what of the window only the log can answer, empty for nothing.
func (w *Window) NeedsLog() string {
	switch w.Form.(type) {
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

// Tiles are the first and the last tile of the window at a moment from which
// the delay is taken.
func (w *Window) Tiles(s *state.Series, at int64) (first, last int64) {
	if s.Tile == 0 {
		return 0, 0
	}
	if c, ok := w.FormOrLifetime().(Clocked); ok {
		return s.TileOf(c.begin(at, s.Tile)), s.TileOf(at)
	}
	return s.TileOf(at - w.Form.Reach().Milliseconds()), s.TileOf(at)
}

// TileCount is the greatest number of the window's tiles.
func (w *Window) TileCount() int64 {
	if w.Tile == 0 {
		return 1
	}
	return max(1, int64((w.FormOrLifetime().Reach()+w.Tile-1)/w.Tile))
}

// Covers are the event times that a window in tiles covers at a moment. The
// last tile may hold events that came after the moment: To then says so. From is
// state.MinTime for a lifetime.
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

// Edges are the first and the last millisecond in which an exact window may
// have events at a moment.
func (w *Window) Edges(at int64) (from, to int64) {
	to = at - w.Delay.Milliseconds()
	switch form := w.FormOrLifetime().(type) {
	case Clocked:
		from = form.begin(to, 1)
		if w.ClosedLeft && w.Forgets() {
			from--
		}
	default:
		from = to - form.Reach().Milliseconds() + 1
	}
	if w.OpenRight {
		to--
	}
	return from, to
}

// LeastMax is how many events the log must keep for the window's last ones.
func (w *Window) LeastMax() int {
	if w.Last > 0 && w.Exclude != ExcludeNothing {
		return w.Last + 1
	}
	return w.Last
}
