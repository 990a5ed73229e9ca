package redisstore

import (
	"fmt"
	"slices"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// receiver takes what keys hold into the slices of reads. It comes from a pool, and goes back there
// by free: the next question mostly looks at the same series of the same groups.
type receiver struct {
	reads   []state.Read
	slices  []state.WindowState // by read
	pending *state.Batch        // nil for none
	secret  packed.Secret

	groups []*states // their states, with nothing in them
}

var receivers = sync.Pool{New: func() any { return new(receiver) }}

func newReceiver(reads []state.Read, slices []state.WindowState, pending *state.Batch, secret packed.Secret) *receiver {
	r := receivers.Get().(*receiver)
	r.reads, r.slices, r.pending, r.secret = reads, slices, pending, secret
	return r
}

func (r *receiver) free() {
	const mostGroups = 64 // others were perhaps those of definitions that have changed
	if len(r.groups) <= mostGroups {
		*r = receiver{groups: r.groups}
		receivers.Put(r)
	}
}

// states are those that reads of a group look at, with nothing in them.
func (r *receiver) states(group string) *states {
	for _, s := range r.groups {
		if s.group == group {
			return s
		}
	}
	s := &states{group: group}
	r.groups = append(r.groups, s)
	return s
}

// receive takes the reply to a lookup into the slices of its reads. Where it is
// damaged they say so; what can still be told from it would be too little.
func (r *receiver) receive(l *lookup) {
	if err := r.take(l); err != nil {
		for _, i := range l.reads {
			r.slices[i] = state.WindowState{Err: err}
		}
	}
}

func (r *receiver) take(l *lookup) error {
	packed, losses, err := l.reply() // they are only read
	if err != nil {
		return err
	}
	if len(packed) == 0 && len(losses) == 0 && r.pending == nil {
		return nil
	}
	held := r.states(l.group)
	defer held.empty()
	held.lookAt(r, l)
	held.losses = losses
	if err := held.merge(packed); err != nil {
		return keyspace.NewError(l.key, err)
	}
	if r.pending != nil {
		if err := l.overlay(held, packed, r.pending); err != nil {
			return err
		}
	}
	for n, i := range l.reads {
		held.read(n, r, i)
	}
	return nil
}

// states are those of some series of an entity.
type states struct {
	group  string
	looks  []look   // by read
	list   []wanted // what they look at
	secret packed.Secret
	losses packed.Losses
}

// look is what a read looks at.
type look struct {
	series *state.Series
	total  bool
	at     int // in list
	window int // of the totals there
}

// wanted is what reads look at of a series: its state, the totals of some windows, or both.
type wanted struct {
	tag    uint32
	series *state.Series
	stated bool
	state  packed.State // where stated, until it cannot be used again
	totals packed.Totals
}

// lookAt makes ready what the reads of a lookup look at. An event in hand changes states, which
// totals are not made of.
func (s *states) lookAt(r *receiver, l *lookup) {
	s.secret = r.secret
	if !s.looksAt(r, l) {
		s.looks, s.list = s.looks[:0], nil
		for _, i := range l.reads {
			s.look(r.reads[i].Series, r.totals(i))
		}
	}
	s.ready()
	for n, i := range l.reads {
		if s.looks[n].total {
			s.list[s.looks[n].at].totals.Over(r.reads[i].First, r.reads[i].Last)
		}
	}
}

// ready makes what is looked at ready to take in what is packed.
func (s *states) ready() {
	for i := range s.list {
		w := &s.list[i]
		w.totals.Reset(w.series)
		if w.stated && w.state == nil {
			w.state = packed.NewKeyed(w.series, s.secret)
		}
	}
}

// totals says whether read i is answered by a total.
func (r *receiver) totals(i int) bool {
	return r.reads[i].Total && r.pending == nil && packed.HasTotals(r.reads[i].Series)
}

// looksAt says whether the reads of a lookup look at the same as those before.
func (s *states) looksAt(r *receiver, l *lookup) bool {
	if len(s.looks) != len(l.reads) {
		return false
	}
	for n, i := range l.reads {
		if s.looks[n].series != r.reads[i].Series || s.looks[n].total != r.totals(i) {
			return false
		}
	}
	return true
}

// look adds a look at a series.
func (s *states) look(series *state.Series, total bool) {
	at := s.find(series.Tag())
	if at < 0 {
		at = len(s.list)
		s.list = append(s.list, wanted{tag: series.Tag(), series: series})
	}
	window := 0
	for _, before := range s.looks {
		if before.at == at && before.total {
			window++
		}
	}
	s.list[at].stated = s.list[at].stated || !total
	s.looks = append(s.looks, look{series, total, at, window})
}

// find is the place of the series with a tag, -1 where it is not looked at.
func (s *states) find(tag uint32) int {
	for i := range s.list {
		if s.list[i].tag == tag {
			return i
		}
	}
	return -1
}

// of is the state of the series with a tag, nil where it is not looked at.
func (s *states) of(tag uint32) packed.State {
	if at := s.find(tag); at >= 0 {
		return s.list[at].state
	}
	return nil
}

// merge takes in what is packed of them.
func (s *states) merge(data []byte) error {
	return packed.Sections(data, func(tag uint32, body []byte) error {
		at := s.find(tag)
		if at < 0 {
			_, err := s.losses.Take(tag, body)
			return err
		}
		w := &s.list[at]
		if w.stated {
			if err := w.state.Merge(body); err != nil {
				return err
			}
		}
		if w.totals.Empty() {
			return nil
		}
		return w.totals.Merge(body)
	})
}

// read answers read i, which is the lookup's n-th.
func (s *states) read(n int, r *receiver, i int) {
	look, slice := &s.looks[n], &r.slices[i]
	w := &s.list[look.at]
	if !look.total {
		*slice = w.state.Read(&r.reads[i])
	} else if all, met := w.totals.Of(look.window); met {
		slice.Buckets = append(slice.Buckets, all)
	}
	slice.LostUntil = s.losses.Of(w.tag)
}

// empty ends the use of what they hold.
func (s *states) empty() {
	for i := range s.list {
		if w := &s.list[i]; w.state != nil && !packed.Emptied(w.state) {
			w.state = nil
		}
	}
	s.losses, s.secret = nil, packed.Secret{}
}

// remember notes the series that say which of the pending events have arrived. They are of
// the group that is read: entities of another kind may have the same text.
func (l *lookup) remember(pending *state.Batch) {
	for i := range pending.Updates {
		t := &pending.Updates[i]
		id := pending.Identity(t)
		if id != nil && id.Series.Group == l.group && string(t.Entity) == l.entity && !slices.Contains(l.ids, id.Series) {
			l.ids = append(l.ids, id.Series)
		}
	}
}

// overlay applies what is pending to what is held, which is made of what is packed.
func (l *lookup) overlay(held *states, data []byte, pending *state.Batch) error {
	ids := states{secret: held.secret}
	for _, s := range l.ids {
		ids.look(s, false)
	}
	ids.ready()
	if err := ids.merge(data); err != nil {
		return keyspace.NewError(l.key, fmt.Errorf("the ids: %w", err))
	}
	packed.Overlay(pending, l.entity, func(s *state.Series) packed.State {
		switch {
		case s.Group != l.group:
			return nil
		case s.Measure == state.RememberID:
			return ids.of(s.Tag())
		}
		return held.of(s.Tag())
	})
	return nil
}

// Slices are long, and most have one bucket. Memory that was used a moment ago is in the caches of
// the processor; what is allocated for each question is not.

// recycled are lists of slices with nothing in them but room for a few buckets each.
var recycled = sync.Pool{New: func() any { return new([]state.WindowState) }}

// mostRecycled and mostBuckets bound the slices of a list, and the room in each, that are kept for the next
// question: larger ones are rare.
const mostRecycled, mostBuckets = 1 << 10, 8

// newSlices are n slices with nothing in them.
func newWindowStates(n int) []state.WindowState {
	list := recycled.Get().(*[]state.WindowState)
	if cap(*list) < n {
		return make([]state.WindowState, n)
	}
	return (*list)[:n]
}

// Recycle takes back slices that were read, with which the caller is done.
func (s *Store) Recycle(slices []state.WindowState) {
	if len(slices) == 0 || cap(slices) > mostRecycled {
		return
	}
	for i := range slices {
		room := slices[i].Buckets
		if cap(room) > mostBuckets {
			room = nil
		}
		clear(room)
		slices[i] = state.WindowState{Buckets: room[:0]}
	}
	recycled.Put(&slices)
}
