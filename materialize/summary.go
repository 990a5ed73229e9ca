package materialize

import (
	"fmt"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
)

// Summary counts what a replay did.
type Summary struct {
	Rows   int // written
	Events int // applied
	Passed int // events of the files that no stream took
	// firstPassed is the first of these in the file that is read.
	firstPassed []byte
	// Repeated counts events that repeat earlier ones, of streams with dedup.
	Repeated int
	Late     int // events that were too late for some feature, as served
	// NoID counts events of the rows' stream, of a Log or as served, that make no row because nothing identifies it.
	NoID int
	// SetAside counts events that could not be used, as served. FirstSetAside is the first one's
	// error, with its location.
	SetAside      int
	FirstSetAside error
	// Capped is the number of values that may be too small, because a feature reached its max.
	Capped int
	// Uncertain is the number of values whose true value may be greater, because values were seen
	// again after late events.
	Uncertain int
	// OutsideMaxAge is the number of values that are missing because the row came later than its
	// feature keeps the past.
	OutsideMaxAge int
	// Incomplete is the number of values that lack events, because a Log no longer has them.
	Incomplete int
	Found      int   // values that count at least one event
	Spilled    int64 // bytes that were sorted on disk

	eventsSeen, rowsSeen span
}

// span is a number of moments, the first and the last, in milliseconds.
type span struct {
	n           int
	first, last int64
}

func (s *span) note(moment int64) { s.add(span{1, moment, moment}) }

func (s *span) add(of span) {
	switch {
	case of.n == 0:
	case s.n == 0:
		*s = of
	default:
		*s = span{s.n + of.n, min(s.first, of.first), max(s.last, of.last)}
	}
}

// read adds what was read.
func (s *Summary) read(of *Summary) {
	s.Passed += of.Passed
	if s.firstPassed == nil {
		s.firstPassed = of.firstPassed
	}
	s.Repeated += of.Repeated
	if s.SetAside += of.SetAside; s.FirstSetAside == nil {
		s.FirstSetAside = of.FirstSetAside
	}
	s.eventsSeen.add(of.eventsSeen)
	s.rowsSeen.add(of.rowsSeen)
}

// add adds the totals of answers.
func (s *Summary) add(a *answers) {
	s.Found += a.found
	s.Capped += a.capped
	s.Uncertain += a.uncertain
	s.OutsideMaxAge += a.outside
	s.Incomplete += a.incomplete
}

// empty returns the error of a useless training set: one without rows, or whose rows have not met a
// single event.
func (s *Summary) empty(r *Replay) error {
	if s.Rows == 0 && s.NoID > 0 {
		return fmt.Errorf("none of the events of stream %s, %d, has an id, so there are no rows", r.Stream.Name, s.NoID)
	}
	if s.Rows == 0 {
		return fmt.Errorf("no event is of stream %s, so there are no rows", r.Stream.Name)
	}
	if r.Spine == nil || s.Found > 0 || len(r.workers[0].answers.asked) == 0 {
		return nil
	}
	for i := range r.workers[0].answers.asked {
		f := r.workers[0].answers.asked[i].Feature
		if f.InHand == nil || r.Spine.held[f.Name] != nil {
			continue
		}
		columns := namesOf(f.OfEvent(), func(i int) string { return eventColumn(f.InHand.Fields[i].Name) })
		return fmt.Errorf("none of the %d rows has a value: feature %q reads the event in hand, which the rows have only with a column for each of %s",
			s.Rows, f.Name, strings.Join(columns, ", "))
	}
	if s.eventsSeen.n == 0 {
		return fmt.Errorf("none of the %d rows finds an event: there are no events", s.Rows)
	}
	return fmt.Errorf("none of the %d rows finds an event: the moments of the rows are from %s to %s, the events from %s to %s; are the entities written as in the events?",
		s.Rows, spelling.Moment(s.rowsSeen.first), spelling.Moment(s.rowsSeen.last), spelling.Moment(s.eventsSeen.first), spelling.Moment(s.eventsSeen.last))
}
