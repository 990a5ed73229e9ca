package model

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// windowModel is the window of a feature at a moment.
type windowModel struct {
	events   []int32 // in the order of their times
	from, to int64   // first and last millisecond; from is state.MinTime if there is no first
	capped   bool    // the window would begin earlier if more of the past were kept
}

// byEvents reports whether the entity's events determine the window.
func (f *feature) byEvents() bool {
	switch f.Window.Type.(type) {
	case window.Fixed, window.Session:
		return true
	}
	return f.Window.Last > 0 || f.Window.Exclude != window.ExcludeNothing
}

// window returns the window at a moment, from the entity's events.
func (f *feature) window(entity string, at int64) windowModel {
	moment := at - f.Window.Delay.Milliseconds()
	w := windowModel{from: f.begins(entity, moment), to: moment}
	switch tile := f.Window.Tile.Milliseconds(); {
	case f.Window.OpenRight:
		w.to--
	case tile > 1:
		w.to = (state.FloorDiv(moment, tile)+1)*tile - 1
	case tile == 0 && !f.Window.Exact:
		w.to = math.MaxInt64 // a lifetime in one tile
	}
	w.to = min(w.to, f.model.until)
	if s, ok := f.Window.Type.(window.Session); ok && w.from <= moment-s.MaxLength.Milliseconds() {
		w.from, w.capped = moment-s.MaxLength.Milliseconds()+1, true
	}
	if fixed, ok := f.Window.Type.(window.Fixed); ok {
		w.capped = !f.rested(fixed, entity, f.knownSince(fixed, entity, moment), moment)
	}
	all, lost := f.events[entity], state.MinTime
	if f.Window.Exact {
		all, lost = f.logged(entity)
	}
	for _, n := range all {
		if t := f.stream.times[n]; w.from <= t && t <= w.to {
			w.events = append(w.events, n)
		}
	}
	w.events = f.inOrder(w.events)
	if f.byEvents() {
		f.exclude(&w, entity, at)
	}
	lacks := lost != state.MinTime && lost >= w.from
	if last := f.Window.Last; last > 0 && len(w.events) >= last {
		w.events = w.events[len(w.events)-last:]
		w.from = f.stream.times[w.events[0]]
		lacks = false
		if _, fixed := f.Window.Type.(window.Fixed); !fixed {
			w.capped = false
		}
	}
	w.capped = w.capped || lacks
	w.events = slices.DeleteFunc(w.events, func(n int32) bool {
		_, counts := slices.BinarySearch(f.events[entity], n)
		return !counts
	})
	return w
}

// exclude removes the newest event at the moment asked for from the window, or all events of that
// time.
func (f *feature) exclude(w *windowModel, entity string, at int64) {
	current := int32(-1)
	events, _ := f.logged(entity)
	for _, n := range events {
		if f.stream.times[n] <= at {
			current = n
		}
	}
	if !slices.Contains(w.events, current) {
		return
	}
	time := f.stream.times[current]
	switch f.Window.Exclude {
	case window.ExcludeCurrent:
		w.events = slices.DeleteFunc(w.events, func(n int32) bool { return n == current })
	case window.ExcludeCurrentTime:
		w.events = slices.DeleteFunc(w.events, func(n int32) bool { return f.stream.times[n] == time })
		w.to = time - 1
	}
}

// begins returns the first millisecond of the window that ends at a moment.
func (f *feature) begins(entity string, at int64) int64 {
	switch typ := f.Window.Type.(type) {
	case window.Rolling:
		// A window in tiles has as many tiles as fit into its size, and ends with the tile that
		// holds the moment.
		if tile := f.Window.Tile.Milliseconds(); tile > 1 {
			at = (state.FloorDiv(at, tile)+1)*tile - 1
		}
		from := at - typ.Size.Milliseconds() + 1
		if f.Window.ClosedLeft {
			from--
		}
		return from
	case window.Tumbling:
		size := typ.Size.Milliseconds()
		return at - (at%size+size)%size
	case window.Calendar:
		return f.page(typ, at)
	case window.LocalDays:
		from := f.page(typ.Day(), at)
		first := pageName(typ.Day(), time.UnixMilli(from).In(typ.Day().Zone).Add(12*time.Hour).AddDate(0, 0, 1-typ.Days).UnixMilli())
		for pageName(typ.Day(), from) > first {
			from = f.page(typ.Day(), from-1)
		}
		return from
	case window.Session:
		return f.session(typ, entity, at)
	case window.Fixed:
		return f.fixed(typ, entity, at)
	default:
		return state.MinTime
	}
}

// page returns the beginning of a calendar unit, searching backwards by quarters of an hour.
func (f *feature) page(c window.Calendar, at int64) int64 {
	const quarter = int64(15 * time.Minute / time.Millisecond)
	t := state.FloorDiv(at, quarter) * quarter
	if f.pages == nil {
		f.pages = map[int64]int64{}
	}
	from, known := f.pages[t]
	if !known {
		back := int64(16) // clocks that go back by up to four hours may show the day before once more
		if c.Unit == "hour" {
			back = 1
		}
		newest := func(at int64) (name string) {
			for i := range back {
				name = max(name, pageName(c, at-i*quarter))
			}
			return name
		}
		name := newest(t)
		for from = t; ; from -= quarter {
			shown := time.UnixMilli(from).In(c.Zone)
			if c.Unit == "hour" && shown.Minute() == 0 || pageName(c, from-quarter) < name && newest(from-quarter) < name {
				break
			}
		}
		f.pages[t] = from
	}
	return from
}

// pageName returns the name of the calendar unit that local clocks show at a moment.
func pageName(c window.Calendar, at int64) string {
	shown := time.UnixMilli(at).In(c.Zone)
	switch c.Unit {
	case "hour":
		return shown.Format("2006-01-02 15")
	case "week":
		back := (int(shown.Weekday()) - int(c.First) + 7) % 7
		return shown.AddDate(0, 0, -back).Format("2006-01-02")
	case "month":
		return shown.Format("2006-01")
	case "quarter":
		return fmt.Sprintf("%04d Q%d", shown.Year(), (shown.Month()+2)/3)
	case "year":
		return shown.Format("2006")
	default:
		return shown.Format("2006-01-02")
	}
}

// session returns the beginning of the session at a moment, or the end of the last one if none is
// open.
func (f *feature) session(s window.Session, entity string, at int64) int64 {
	gap := s.Gap.Milliseconds()
	from, last := at-s.MaxLength.Milliseconds()+1, state.MinTime
	times, _ := f.known(entity)
	for _, t := range times {
		if t > at || t <= at-s.Reach().Milliseconds() {
			continue // too long before to matter
		}
		if last == state.MinTime || t-last >= gap {
			from = t
		}
		last = t
	}
	if last != state.MinTime && at-last >= gap {
		return last + gap
	}
	return from
}

// fixed returns the beginning of the fixed window at a moment, or the end of the last one if none
// is open.
func (f *feature) fixed(w window.Fixed, entity string, at int64) int64 {
	size, last := w.Size.Milliseconds(), f.knownSince(w, entity, at)-1
	from, end := last+1, last+1
	times, _ := f.known(entity)
	for _, t := range times {
		if t <= at && t >= end {
			from, end = t, t+size
		}
		if t <= at {
			last = max(last, t)
		}
	}
	switch {
	case at < end:
		return from
	case f.rested(w, entity, f.knownSince(w, entity, at), last):
		return end
	case at-last >= size:
		return last + size // at the latest
	default:
		return end
	}
}

// knownSince returns the moment since which all events are known that an entity's fixed windows
// depend on.
func (f *feature) knownSince(w window.Fixed, entity string, at int64) int64 {
	length := w.MaxLength.Milliseconds()
	_, lost := f.known(entity)
	return max(lost, (state.FloorDiv(at, length)-1)*length)
}

// rested reports whether there was a time without events between two moments, as long as a fixed
// window.
func (f *feature) rested(w window.Fixed, entity string, from, to int64) bool {
	last := from - 1
	times, _ := f.known(entity)
	for _, t := range times {
		if t > last && t <= to {
			if t-last >= w.Size.Milliseconds() {
				return true
			}
			last = t
		}
	}
	return to-last >= w.Size.Milliseconds()
}

// inOrder returns events in the order of their times, those with equal times in order of arrival.
func (f *feature) inOrder(events []int32) []int32 {
	return slices.SortedStableFunc(slices.Values(events), func(a, b int32) int {
		return cmp.Compare(f.stream.times[a], f.stream.times[b])
	})
}
