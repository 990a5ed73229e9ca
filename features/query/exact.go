package query

import (
	"cmp"
	"math"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/state"
)

// eventLog is the log of an entity, decoded once for all features of a question.
type eventLog struct {
	// events are ordered by time, and by arrival within one time.
	events []state.LogRecord
	lost   int64 // the greatest time of an event that a cap has dropped
	secret state.Secret
}

// noLog is the log of an entity without events.
var noLog = &eventLog{lost: nothingCut}

// decodeLog decodes the log of a window state. The events alias it.
func decodeLog(of *state.WindowState) (*eventLog, error) {
	l := &eventLog{lost: nothingCut, secret: of.Secret}
	log := of.Log
	if lost, ok := log.CutOff(); ok {
		l.lost = lost
	}
	err := log.Records(func(r state.LogRecord) bool {
		l.events = append(l.events, r)
		return true
	})
	if err != nil {
		return nil, err
	}
	return l, nil
}

// since returns the events, ordered by time, that are not before a time.
func since(events []state.LogRecord, from int64) []state.LogRecord {
	return events[earlier(events, from):]
}

// upTo returns the events, ordered by time, that are not after a time.
func upTo(events []state.LogRecord, to int64) []state.LogRecord {
	return events[:earlier(events, to+1)]
}

// earlier counts the events, ordered by time, before a time.
func earlier(events []state.LogRecord, time int64) int {
	n, _ := slices.BinarySearchFunc(events, time, func(r state.LogRecord, time int64) int {
		if r.Time < time {
			return -1
		}
		return 1
	})
	return n
}

// nothingCut is the value of lost if no event was dropped.
const nothingCut = math.MinInt64

// fold computes an exact feature at a moment from the log of its entity, or from those of several taken together, each
// with its own window. The content of the buffer is valid until its next use.
func fold(f *frame, logs []*eventLog, at int64, buffer *[]aggregate.Sample) (r aggregate.Result, c coverage, err error) {
	samples, capped := (*buffer)[:0], false
	var secret state.Secret
	for i, log := range logs {
		if len(log.events) > 0 {
			secret = log.secret
		}
		cut := cutOut(f.Feature, log, at)
		if f.compared != nil {
			samples, err = f.compared.samplesOf(f.Feature, samples, cut.events)
		} else {
			samples, err = samplesOf(f.Feature, samples, cut.events)
		}
		if err != nil {
			return r, c, err
		}
		if i == 0 {
			c = cut.coverage
		}
		c = coverage{min(c.from, cut.from), max(c.to, cut.to), min(c.coveredSince, cut.coveredSince)}
		capped = capped || cut.capped
	}
	*buffer = samples
	if len(logs) > 1 {
		slices.SortStableFunc(samples, func(a, b aggregate.Sample) int { return cmp.Compare(a.Time, b.Time) })
	}
	r = f.Fold(at-f.Window.Delay.Milliseconds(), samples, secret)
	if capped && !f.Settled(samples) || f.compared != nil && f.compared.beyond {
		r.Capped = true
		if f.Call.Members != nil {
			aggregate.DoubtMembers(r.Items)
		}
	}
	return r, c, nil
}

// coverage holds the event times that an exact window covers.
type coverage struct {
	from, to int64 // the first and the last millisecond
	// coveredSince is the first millisecond that the window depends on: from, or one before it if
	// events determine where it begins.
	coveredSince int64
}

// cutting is an exact window cut from a log.
type cutting struct {
	coverage
	events []state.LogRecord // ordered by time
	capped bool              // some of its events are no longer in the log
}

// cutOut cuts the window of a moment from a log.
func cutOut(f *features.Feature, log *eventLog, at int64) cutting {
	w := f.Window
	from, to := w.Edges(at)
	end := to
	if w.Exclude != window.ExcludeNothing {
		end = at // the event being scored may be newer than a window with a delay
	}
	events := upTo(since(log.events, from), end)
	c, sure := cutting{coverage: coverage{from, to, from}, events: upTo(events, to)}, true
	typ, opens := w.Type.(window.Opened)
	if opens {
		times := timesOf(c.events, log.lost, from, to)
		c.from, c.coveredSince, sure = typ.Open(to, max(from, log.lost), times)
		c.events = since(c.events, c.from)
	}
	// The event being scored is the last one. It affects where the window begins, but not its content.
	if n := len(c.events); n > 0 && len(events) > 0 && events[len(events)-1].Time <= to {
		switch w.Exclude {
		case window.ExcludeCurrent:
			c.events = c.events[:n-1]
		case window.ExcludeCurrentTime:
			c.to = c.events[n-1].Time - 1
			c.events = upTo(c.events, c.to)
		}
	}
	lacks := log.lost != nothingCut && log.lost >= c.from
	if n := len(c.events); w.Last > 0 && n >= w.Last {
		c.events = c.events[n-w.Last:]
		c.from = c.events[0].Time
		// Dropped events came before them. They are the last events of a session even if it began
		// earlier. A fixed window may have begun after them.
		lacks = false
		if _, fixed := w.Type.(window.Fixed); !fixed {
			sure = true
		}
		if !opens {
			c.coveredSince = c.from
		}
	}
	c.capped = !sure || lacks
	return c
}

// timesOf returns the known times of events from one time to another, in order. The last event that
// a cap dropped is the first of them if it lies in between.
func timesOf(events []state.LogRecord, lost, from, to int64) []int64 {
	list := make([]int64, 0, len(events)+1)
	if from <= lost && lost <= to {
		list = append(list, lost)
	}
	for _, r := range events {
		if r.Time > lost {
			list = append(list, r.Time)
		}
	}
	return list
}

// samplesOf appends the samples of the events that pass the feature's filter.
func samplesOf(f *features.Feature, dst []aggregate.Sample, events []state.LogRecord) ([]aggregate.Sample, error) {
	samples := slices.Grow(dst, len(events))
	for i := range events {
		var s aggregate.Sample
		takes, err := sampleOf(&s, &f.Columns, &events[i])
		if err != nil {
			return nil, err
		}
		if takes {
			samples = append(samples, s)
		}
	}
	return samples, nil
}

// sampleOf reads the feature's columns of an event, and reports whether the event passes the filter.
func sampleOf(s *aggregate.Sample, of *features.LogColumns, r *state.LogRecord) (takes bool, err error) {
	*s = aggregate.Sample{Time: r.Time}
	if of.Filter != nil {
		if takes, err = r.Has(*of.Filter); err != nil || !takes {
			return false, err
		}
	}
	if of.Field != nil {
		if _, err = r.Column(*of.Field, &s.Value); err != nil {
			return false, err
		}
	}
	if of.Category != nil {
		if _, err = r.Column(*of.Category, &s.Category); err != nil {
			return false, err
		}
	}
	if of.Condition != nil {
		if s.Holds, err = r.Has(*of.Condition); err != nil {
			return false, err
		}
	}
	return true, nil
}
