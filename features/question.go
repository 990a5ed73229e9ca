package features

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weir-stream/weir/features/kinds"
)

// find looks up a name in a list that is sorted by it.
func find[T any](list []T, name string, nameOf func(T) string) (T, bool) {
	i, ok := slices.BinarySearchFunc(list, name, func(t T, name string) int {
		switch n := nameOf(t); {
		case n < name:
			return -1
		case n > name:
			return 1
		}
		return 0
	})
	if !ok {
		var none T
		return none, false
	}
	return list[i], true
}

// Topics lists the topics that the registry's streams read, sorted.
func (r *Registry) Topics() []string {
	var topics []string
	for _, s := range r.Streams {
		topics = append(topics, s.Topic)
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// Status says what a value rests on.
type Status string

// The statuses of an answer.
const (
	Present   Status = "PRESENT"    // computed from events in the window
	NullValue Status = "NULL_VALUE" // events in the window, but no value
	NotFound  Status = "NOT_FOUND"  // no event in the window: the neutral value
)

// Answer is the value of one feature for one entity at one moment.
type Answer struct {
	Value  kinds.Value
	Items  []kinds.Item // the value where it has a shape; Value is null then
	Shape  kinds.Shape
	Status Status
	// From and To are the first and the last millisecond of the event times
	// that the value covers. From is nil for a lifetime.
	From *int64
	To   int64
	// Exact says that the value is exactly that of the events in the window.
	Exact         bool
	StandardError float64 // relative, of estimates
	Uncertain     int64   // see kinds.Result
	Capped        bool
}

// Reads lists what must be read to answer the feature at a moment, one read
// for each of its series.
func (f *Feature) Reads(dst []kinds.Read, entity string, at int64) []kinds.Read {
	for i, part := range f.Parts {
		dst = part.Reads(dst, f.entityOf(i, entity), at)
	}
	if f.Parts != nil {
		return dst
	}
	for _, s := range f.Series {
		first, last := f.Window.tiles(s, at-f.Window.Delay.Milliseconds())
		dst = append(dst, kinds.Read{Series: s, Entity: entity, First: first, Last: last})
	}
	return dst
}

// Answer folds what was read for the feature, in the order of Reads. The
// moment asked for and the present one are in milliseconds.
// The error is that the store holds what this program cannot read.
func (f *Feature) Answer(slices []kinds.Slice, at, now int64) (Answer, error) {
	if f.Parts != nil {
		return f.derive(slices, at, now)
	}
	spec := f.Kind.Spec()
	var r kinds.Result
	if f.Window.Exact {
		var err error
		if r, err = f.fold(slices[0].Log, at); err != nil {
			return Answer{}, fmt.Errorf("feature %s: %w", f.Name, err)
		}
	} else {
		r = f.Kind.(kinds.Tiled).Merge(f.Call, slices)
	}
	a := Answer{
		Value: r.Value, Items: r.Items, Shape: spec.Shape, Status: Present, Exact: spec.Exact && r.Uncertain == 0 && !r.Capped,
		StandardError: spec.StandardError, Uncertain: r.Uncertain, Capped: r.Capped,
	}
	switch {
	case !r.Found:
		a.Value, a.Status = spec.Neutral, NotFound
	case r.IsNull():
		a.Status = NullValue
	}
	a.From, a.To = f.Window.bounds(f.Series[0], at, now)
	return a, nil
}

// tiles are the first and the last tile of the window at a moment.
func (w Window) tiles(s *kinds.Series, at int64) (first, last int64) {
	last = s.TileOf(at)
	switch {
	case w.Size > 0:
		return last - w.Size.Milliseconds()/s.Tile + 1, last
	case s.Tile > 0:
		return math.MinInt64, last
	default:
		return 0, 0
	}
}

// bounds are the event times that the window covers at a moment. The last tile
// may hold events that came after the moment: To then says so.
func (w Window) bounds(s *kinds.Series, at, now int64) (from *int64, to int64) {
	if w.Exact {
		return w.edges(at)
	}
	at, now = at-w.Delay.Milliseconds(), now-w.Delay.Milliseconds()
	first, last := w.tiles(s, at)
	if w.Size > 0 {
		start := first * s.Tile
		from = &start
	}
	if s.Tile == 0 {
		return from, max(at, now)
	}
	return from, max(at, min((last+1)*s.Tile-1, now))
}

// Tiled says whether the window begins with a tile; if not, its edge is exact
// to the millisecond or it has none.
func (w Window) Tiled() bool { return w.Tile > time.Millisecond }
