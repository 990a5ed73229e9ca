package definition

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// window reads a feature's window and its options: tile, bounds, delay and exclude.
func (l *compiler) window(d *writtenFeature, function aggregate.Function) window.Window {
	var w window.Window
	typ, ok := windows{l.reader}.windowType(d.window)
	if last, ok := d.window.keys["last"]; ok {
		w.Last = l.number(last, "last")
	}
	if !ok {
		return window.Window{} // it has a finding already
	}
	w.Type = typ
	if d.exclude.given() {
		w.Exclude = window.Exclusion(max(0, slices.Index(window.Exclusions, d.exclude.text)))
		if w.Exclude == window.ExcludeNothing {
			l.report(d.exclude.location, "%s", spelling.Unknown("exclude", d.exclude.text, window.Exclusions[1:]))
		}
	}
	w.Exact = l.fromTheLog(d, function, w)
	if !w.Exact {
		w.Tile = l.tile(d, function, w.TypeOrLifetime().(window.Clocked))
		if d.exclude.given() {
			l.report(d.exclude.location, "exclude leaves out single events, which tiles do not tell apart: add tile: exact")
		}
	}
	l.bounds(d, &w)
	l.delay(d, function, &w)
	return w
}

// number reads a number of events or values to keep.
func (l *reader) number(w word, what string) int {
	n, err := strconv.Atoi(w.text)
	if err != nil || n < 1 || n > maxMax {
		l.report(w.location, "bad %s %q: it must be a number from 1 to %d", what, w.text, maxMax)
	}
	return n
}

// fromTheLog reports whether the window is answered from the log: because of its tile, its function, or its window
// type.
func (l *compiler) fromTheLog(d *writtenFeature, function aggregate.Function, w window.Window) bool {
	if strings.EqualFold(d.tile.text, "exact") {
		return true
	}
	what, onlyLog := fromLog(function, l.measuredType(d), d.per.given(), w.Type == nil), w.NeedsLog()
	if onlyLog == "" && expr.NamesEvent(d.where.text) {
		if onlyLog = "a filter that compares with the event in hand"; what == "" && w.Type == nil {
			l.report(d.where.location, "%s is answered from the log, which keeps the last %d events of an entity, and not a lifetime; give the window a length, or add tile: exact, with max for more events", onlyLog, features.DefaultLogMax)
			return true
		}
	}
	if what == "" && onlyLog != "" {
		what = onlyLog
		// A function that was chosen for its own state must not be answered from a log.
		if layoutOf(function).Chosen() {
			l.report(d.window.whole.location, "%s is answered from the log, and %s is not kept there; use count_distinct with method set, or add tile: exact",
				what, called(function.Spec()))
			return true
		}
	}
	if what != "" && d.tile.given() {
		l.report(d.tile.location, "tile %s does not apply to %s, which is answered from the log; omit tile, or write tile: exact",
			d.tile.text, what)
	}
	return what != ""
}

// layoutOf returns the layout of a function that has tiles.
func layoutOf(function aggregate.Function) state.Layout {
	return function.(aggregate.Mergeable).Measures(aggregate.Call{})[0].Layout()
}

// measuredType returns the type of the definition's field, Null if there is none.
func (l *compiler) measuredType(d *writtenFeature) value.Type {
	if stream, ok := l.streams.registry.Stream(d.stream.text); ok {
		if i := stream.FieldIndex(d.field.text); i >= 0 {
			return stream.Fields[i].Type
		}
	}
	return value.Null
}

// tile reads the width of a window's tiles. A function whose state has an exact edge has none: its
// tile is a millisecond.
func (l *compiler) tile(d *writtenFeature, function aggregate.Function, typ window.Clocked) time.Duration {
	if layoutOf(function).Exact() {
		if d.tile.given() {
			l.report(d.tile.location, "tile does not apply to method %s: its window is exact", function.Spec().Method)
		}
		return time.Millisecond
	}
	if function.Spec().TilesAreUnits {
		return l.unitTile(d, function.Spec(), typ)
	}
	tile, at := typ.DefaultTile(), d.window.whole.location
	if d.tile.given() {
		at = d.tile.location
		var ok bool
		if tile, ok = l.duration(d.tile); !ok {
			return 0
		}
		if tile == 0 {
			l.report(at, "a tile must be longer than 0")
			return 0
		}
	}
	if err := typ.CheckTile(tile); err != nil {
		l.report(at, "%s", err)
	}
	return tile
}

// unitTile returns the tile width of a function whose tiles are the units that it counts.
func (l *compiler) unitTile(d *writtenFeature, spec aggregate.Spec, typ window.Clocked) time.Duration {
	if d.tile.given() {
		l.report(d.tile.location, "tile does not apply to %s, whose tiles are its units; omit tile, or write tile: exact", spec.Name)
		return 0
	}
	w := *d.parameters["unit"]
	if !w.given() {
		w = word{text: spec.Parameters[0].Default, location: d.window.whole.location}
	}
	unit, err := window.ParseDuration(w.text)
	if err != nil || unit == 0 {
		return 0 // the parameter has a finding
	}
	if err := typ.CheckTile(unit); err != nil {
		l.report(w.location, "%s; the tiles of %s are its units: choose another unit, or write tile: exact", err, spec.Name)
	}
	return unit
}

// bounds reads the bounds of an exact window.
func (l *compiler) bounds(d *writtenFeature, w *window.Window) {
	if !d.bounds.given() {
		return
	}
	edges, ok := window.BoundsByName[d.bounds.text]
	switch w.Type.(type) {
	case nil, window.Rolling:
	default:
		l.report(d.bounds.location, "bounds apply to rolling windows only, and a window %s includes its first moment; omit bounds", w.Type)
		return
	}
	switch {
	case !w.Exact:
		l.report(d.bounds.location, "bounds apply to exact windows only: add tile: exact")
	case !ok:
		l.report(d.bounds.location, "%s", spelling.Unknown("bounds", d.bounds.text, slices.Collect(maps.Keys(window.BoundsByName))))
	}
	w.ClosedLeft, w.OpenRight = edges.ClosedLeft, edges.OpenRight
}

// delay reads how long before the moment of the question a window ends.
func (l *compiler) delay(d *writtenFeature, function aggregate.Function, w *window.Window) {
	if !d.delay.given() {
		return
	}
	switch {
	case !w.Exact && function.Spec().Method == "last_seen":
		l.report(d.delay.location, "delay does not apply to method last_seen, which knows only when each value was last seen; add tile: exact")
		return
	case !w.Forgets() && w.Last > 0:
		l.report(d.delay.location, "delay does not apply to the last %d of a lifetime; give the window a length, such as {rolling: 30d, last: %d}", w.Last, w.Last)
		return
	case !w.Forgets():
		l.report(d.delay.location, "delay does not apply to a lifetime")
		return
	}
	w.Delay, _ = l.duration(d.delay)
	if w.Tiled() && w.Delay%w.Tile != 0 {
		l.report(d.delay.location, "delay %s is not a multiple of the tile %s; make it one, or use tile: exact",
			window.FormatDuration(w.Delay), window.FormatDuration(w.Tile))
	}
}

// maximum reads the greatest number of values or events to keep.
func (l *compiler) maximum(d *writtenFeature, f *features.Feature, spec aggregate.Spec) {
	f.Call.Max = defaultMax(f)
	if !d.max.given() {
		return
	}
	if f.Call.Max == 0 {
		l.report(d.max.location, "max does not apply to %s, which keeps everything", called(spec))
	}
	f.Call.Max = l.number(d.max, "max")
	if least := f.Window.LeastMax(); 0 < f.Call.Max && f.Call.Max < least {
		l.report(d.max.location, "max %d keeps too few events for last %d; it must be %d or more", f.Call.Max, f.Window.Last, least)
	}
}

// defaultMax returns the cap if none is chosen, 0 if the function has none.
func defaultMax(f *features.Feature) int {
	if f.Window.Exact {
		return max(features.DefaultLogMax, f.Window.LeastMax())
	}
	if f.Per != "" {
		return features.DefaultCategories
	}
	return f.Spec.DefaultMax
}
