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
	Items  []aggregate.Item // the value if it has a shape; Value is null then
	Shape  aggregate.Shape
	Status Status
	// From and To are the first and the last millisecond of the event times that the value covers.
	// From is state.MinTime for a lifetime. To lies before From if the excluded event was the only
	// one.
	From, To int64
	// Exact means that the value is computed exactly from the events in the window.
	Exact         bool
	StandardError float64 // relative, of estimates
	RelativeError float64 // see aggregate.Result
	Uncertain     int64   // see aggregate.Result
	Capped        bool
	// LaterEvents is true if the value may count events after the moment, which lies in the past; see
	// Reading.SetPresent. The answer is then not exact, and has the status LaterEvents unless it is Incomplete or has no
	// value.
	LaterEvents bool
	// FalsePositiveRate bounds the probability that a member is found that was not in the window.
	FalsePositiveRate float64
	// Oldest is the oldest moment that can be asked about, in milliseconds; only with
	// OutsideMaxAge.
	Oldest int64
	// CompleteSince is the event time since which the value's state holds all events, in
	// milliseconds; state.MinTime if it holds all of them. The answer is complete, and not
	// Incomplete, if From is not before it.
	CompleteSince int64
	// CompleteAt is the moment, in milliseconds, from which answers are complete at the latest: the window has then
	// passed what the state lacks. It is 0 if that never happens, or if it is not known when.
	CompleteAt int64
	// Filling is true for an Incomplete answer if a backfill adds the missing state; it has applied the share Filled,
	// at least 0 and below 1.
	Filling bool
	Filled  float64
	// Err is the error of the store for Damaged and Unavailable. It is for operators.
	Err error

	// since is the event time since which the entity's state holds all events; state.MinTime if
	// none of it was dropped.
	since int64
	// slides is true if since moves with the clock.
	slides bool
	// uneven is true for a quotient of which one term has lost more of the entity's state than the other.
	uneven bool
	// coveredSince is the first millisecond of the event times that value and From depend on: From,
	// or one before it; state.MinTime for all events.
	coveredSince int64
}

// fromTiles answers a feature over a stream from the window states of its series, in their order: of one entity, or of
// several taken together, one after another.
func fromTiles(a *Answer, f *frame, states []state.WindowState) {
	if n := len(f.Series); len(states) != n {
		states = united(states, n)
	}
	*a = Answer{}
	a.From, a.To, a.CompleteSince, a.since, a.coveredSince = f.from, f.to, state.MinTime, state.MinTime, f.from
	r := f.Merge(states, f.at-f.Window.Delay.Milliseconds())
	setResult(a, f.Spec, f.Per, &r)
	a.Exact = a.Exact && !f.exceeds
}

// fromLogs answers an exact feature from the logs of its entities; see fold. It fails if a log is damaged.
func fromLogs(a *Answer, f *frame, logs []*eventLog, at int64, buffer *[]aggregate.Sample) error {
	r, c, err := fold(f, logs, at, buffer)
	if err != nil {
		return fmt.Errorf("feature %s: %w", f.Name, err)
	}
	*a = Answer{From: c.from, To: c.to, CompleteSince: state.MinTime, since: state.MinTime, coveredSince: c.coveredSince}
	setResult(a, f.Spec, f.Per, &r)
	return nil
}

// unread makes an answer that says why the state could not be read.
func unread(a *Answer, f *features.Feature, err error, at, now int64) {
	*a = Answer{Status: Damaged, CompleteSince: state.MinTime, since: state.MinTime, Err: err}
	if errors.Is(err, state.ErrUnavailable) {
		a.Status = Unavailable
	}
	a.From, a.To = Covers(f, at, now)
	a.coveredSince = a.From
}

// late marks the answer if it may count events after its moment.
func (a *Answer) late() {
	if !a.LaterEvents || a.Status.Unread() {
		return
	}
	if a.Exact = false; a.Status != Incomplete {
		a.Status = LaterEvents
	}
}

// setResult copies the result of a function into the answer, by category if the feature has categories.
func setResult(a *Answer, spec *aggregate.Spec, per string, r *aggregate.Result) {
	a.Shape, a.Status, a.StandardError = spec.Shape, Present, max(spec.StandardError, r.StandardError)
	a.Value, a.Items, a.RelativeError, a.Uncertain, a.Capped = r.Value, r.Items, r.RelativeError, r.Uncertain, r.Capped
	a.FalsePositiveRate = r.FalsePositiveRate
	a.Exact = spec.Exact && r.Uncertain == 0 && r.RelativeError == 0 && r.StandardError == 0 && r.FalsePositiveRate == 0 && !r.Capped
	if per != "" {
		a.Shape = aggregate.Categories
	}
	switch {
	case r.Found:
		if r.IsNull() {
			a.Status = NullValue
		}
	case r.Capped:
		a.withhold()
	case per != "":
		a.Items, a.Status = []aggregate.Item{}, NotFound
	default:
		a.Value, a.Status = spec.Neutral, NotFound
	}
}

// withhold takes the value from an answer that knows no event of its window, but lacks some because of a cap: 0 would say
// that there were none. What it says about members stays.
func (a *Answer) withhold() {
	a.Value, a.Status = value.Value{}, Present
	if len(a.Items) == 0 {
		a.Items, a.Status = nil, NullValue
	}
}

// TakeOnly makes an answer about one member a scalar: what it says about that member.
func (a *Answer) TakeOnly() {
	if len(a.Items) > 0 {
		a.Value, a.Items = a.Items[0].Value, nil
	}
}

// Covers returns the event times that an answer of the feature covers, like Answer.From and To; at and now are in
// milliseconds.
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
	case *features.MultiHop:
		return Covers(basis.Each, at, now)
	case *features.OfTable:
		return at, at
	default:
		return f.Window.Covers(f.Series[0], at, now)
	}
}

// united merges the window states of n series that several entities share.
func united(states []state.WindowState, n int) []state.WindowState {
	all := make([]state.WindowState, n)
	for i := range all {
		var of []state.WindowState
		for j := i; j < len(states); j += n {
			of = append(of, states[j])
		}
		all[i] = state.Unite(of)
	}
	return all
}
