package model

import (
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// log is shared by the exact features of one stream with the same by-fields. Of the events that any
// of them uses, it keeps the last ones of each entity by time.
type log struct {
	features []*feature
	events   map[string][]int32 // all events by entity, in order of arrival
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

// add adds event n of the stream if any of the features uses it.
func (l *log) add(e *record.Event, n int32) {
	entity, ok := l.features[0].entity(nil, e.Values)
	if !ok || l.features[0].late(e) {
		return
	}
	if slices.ContainsFunc(l.features, func(f *feature) bool { return f.byEvents() || f.takes(e) }) {
		l.events[string(entity)] = append(l.events[string(entity)], n)
	}
}

// takes reports whether an event passes the feature's filter.
func (f *feature) takes(e *record.Event) bool {
	if f.where == nil {
		return true
	}
	passed, _ := f.where.True(e.Values)
	return passed
}

// logged returns the events of an entity that are still in its log, in the order of their times,
// and the time of the last dropped one; state.MinTime for none.
func (f *feature) logged(entity string) (events []int32, lost int64) {
	events = f.inOrder(f.log.events[entity])
	if n := len(events) - f.Series[0].Max; n > 0 {
		return events[n:], f.stream.times[events[n-1]]
	}
	return events, state.MinTime
}

// known returns the times that may begin windows: those of the events in the log, and of the last
// dropped one.
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
