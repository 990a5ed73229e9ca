package query

import (
	"errors"
	"fmt"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Answer is the value of one feature for one entity at one moment.
type Answer struct {
	Value  value.Value
	Items  []aggregate.Item // the value where it has a shape; Value is null then
	Shape  aggregate.Shape
	Status Status
	// From and To are the first and the last millisecond of the event times
	// that the value covers. From is state.MinTime for a lifetime. To lies before From
	// where the event left out was the only one.
	From, To int64
	// Exact says that the value is exactly that of the events in the window.
	Exact         bool
	StandardError float64 // relative, of estimates
	RelativeError float64 // see aggregate.Result
	Uncertain     int64   // see aggregate.Result
	Capped        bool
	// FalsePositiveRate is the probability at the most with which a member that
	// was not met is said to have been.
	FalsePositiveRate float64
	// Oldest is, with OutsideMaxAge, the oldest moment that can be asked for, in
	// milliseconds.
	Oldest int64
	// CompleteSince is the event time from which on all events are in the state
	// that the value is of, in milliseconds; state.MinTime where all there ever were
	// are. The answer is whole, and not Incomplete, if From is not before it.
	CompleteSince int64
	// Err is, with Damaged and Unavailable, what is wrong in the store. It is for the
	// operator.
	Err error

	// since is the event time from which on the state of the entity holds all events;
	// state.MinTime where none of it was dropped.
	since int64
	// coveredSince is the first millisecond of the event times that value and From rest
	// on: From, or one before it; state.MinTime for all there ever was.
	coveredSince int64
}

// readsOf lists what must be read to answer a feature over a stream at a moment,
// one read for each of its series.
func readsOf(dst []state.Read, f *features.Feature, entity string, at int64) []state.Read {
	_, total := f.Kind.(aggregate.Totalled)
	for _, s := range f.Series {
		first, last := f.Window.Tiles(s, at-f.Window.Delay.Milliseconds())
		dst = append(dst, state.Read{Series: s, Entity: entity, First: first, Last: last, Total: total})
	}
	return dst
}

// fromTiles answers a feature over a stream from what was read of its series, in
// the order of readsOf: of one entity, or of several that are taken together, one
// behind the other. The moment asked for and the present one are in milliseconds.
func fromTiles(a *Answer, f *features.Feature, slices []state.WindowState, at, now int64) {
	if n := len(f.Series); len(slices) != n {
		slices = united(slices, n)
	}
	*a = Answer{CompleteSince: state.MinTime, since: state.MinTime}
	a.From, a.To = f.Window.Covers(f.Series[0], at, now)
	a.coveredSince = a.From
	r, spec := f.Merge(slices, at-f.Window.Delay.Milliseconds()), f.Kind.Spec()
	tell(a, &spec, f.Per, &r)
}

// fromLogs answers an exact feature from the logs of its entities; see fold. The
// error is that the store holds what this program cannot read.
func fromLogs(a *Answer, f *features.Feature, logs []*eventLog, at int64, buffer *[]aggregate.Sample) error {
	r, c, err := fold(f, logs, at, buffer)
	if err != nil {
		return fmt.Errorf("feature %s: %w", f.Name, err)
	}
	*a = Answer{From: c.from, To: c.to, CompleteSince: state.MinTime, since: state.MinTime, coveredSince: c.coveredSince}
	spec := f.Kind.Spec()
	tell(a, &spec, f.Per, &r)
	return nil
}

// unread answers that the state could not be read, for a reason.
func unread(a *Answer, f *features.Feature, err error, at, now int64) {
	*a = Answer{Status: Damaged, CompleteSince: state.MinTime, since: state.MinTime, Err: err}
	if errors.Is(err, state.ErrUnavailable) {
		a.Status = Unavailable
	}
	a.From, a.To = Covers(f, at, now)
	a.coveredSince = a.From
}

// tell makes the result of a function, by category of a field if there is one, the
// answer's.
func tell(a *Answer, spec *aggregate.Spec, per string, r *aggregate.Result) {
	a.Shape, a.Status, a.StandardError = spec.Shape, Present, max(spec.StandardError, r.StandardError)
	a.Value, a.Items, a.RelativeError, a.Uncertain, a.Capped = r.Value, r.Items, r.RelativeError, r.Uncertain, r.Capped
	a.FalsePositiveRate = r.FalsePositiveRate
	a.Exact = spec.Exact && r.Uncertain == 0 && r.RelativeError == 0 && r.StandardError == 0 && r.FalsePositiveRate == 0 && !r.Capped
	if per != "" {
		a.Shape = aggregate.Categories
	}
	switch {
	case !r.Found && per != "":
		a.Items, a.Status = []aggregate.Item{}, NotFound
	case !r.Found:
		a.Value, a.Status = spec.Neutral, NotFound
	case r.IsNull():
		a.Status = NullValue
	}
}

// Covers are the event times that an answer of the feature covers, as of
// Answer.From and To; at and the present moment are in milliseconds.
func Covers(f *features.Feature, at, now int64) (from, to int64) {
	switch basis := f.Basis.(type) {
	case *features.Derived:
		for i, part := range basis.Of {
			first, last := Covers(part, at, now)
			if i == 0 {
				from, to = first, last
			}
			from, to = min(from, first), max(to, last)
		}
		return from, to
	case *features.Through:
		return Covers(basis.Each, at, now)
	default:
		return f.Window.Covers(f.Series[0], at, now)
	}
}

// united are the slices of n series, which several entities have all.
func united(slices []state.WindowState, n int) []state.WindowState {
	all := make([]state.WindowState, n)
	for i := range all {
		var of []state.WindowState
		for j := i; j < len(slices); j += n {
			of = append(of, slices[j])
		}
		all[i] = state.Unite(of)
	}
	return all
}
