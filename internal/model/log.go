package model

import (
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// log is what exact features of one stream and one kind of entity share: of the
// events that any of them looks at, the last ones of an entity by time.
type log struct {
	features []*feature
	events   map[string][]int32 // all, by entity, in the order in which they came
}

// shareLog gives an exact feature its log.
func (s *stream) shareLog(f *feature) {
	if !f.Window.Exact {
		return
	}
	key := strings.Join(f.By, "|")
	if s.logs[key] == nil {
		s.logs[key] = &log{events: map[string][]int32{}}
	}
	f.log = s.logs[key]
	f.log.features = append(f.log.features, f)
}

// add notes event n of the stream if any of the features looks at it.
func (l *log) add(e *record.Event, n int32) {
	entity, ok := l.features[0].entity(nil, e.Values)
	if !ok || l.features[0].late(e) {
		return
	}
	if slices.ContainsFunc(l.features, func(f *feature) bool { return f.byEvents() || f.takes(e) }) {
		l.events[string(entity)] = append(l.events[string(entity)], n)
	}
}

// takes says whether an event passes the feature's filter.
func (f *feature) takes(e *record.Event) bool {
	if f.where == nil {
		return true
	}
	passed, _ := f.where.True(e.Values)
	return passed
}

// logged are the events of an entity that are still in its log, in the order of
// their times, and the time of the last one that is not; state.MinTime for none.
func (f *feature) logged(entity string) (events []int32, lost int64) {
	events = f.inOrder(f.log.events[entity])
	if n := len(events) - f.Series[0].Max; n > 0 {
		return events[n:], f.stream.times[events[n-1]]
	}
	return events, state.MinTime
}

// known are the times by which windows begin: those of the events in the log, and
// of the last one that is not.
func (f *feature) known(entity string) (times []int64, lost int64) {
	events, lost := f.logged(entity)
	if lost != state.MinTime {
		times = append(times, lost)
	}
	for _, n := range events {
		times = append(times, f.stream.times[n])
	}
	return times, lost
}
