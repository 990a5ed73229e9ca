package redisstore

import (
	"fmt"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// receiver decodes the content of keys into the window states of reads. Receivers are pooled (see free), because the
// next question mostly reads the same series of the same groups.
type receiver struct {
	reads        []state.Read
	windowStates []state.WindowState // by read
	pending      *state.Batch        // nil for none
	secret       state.Secret

	groups []*states // their states, empty
}

var receivers = sync.Pool{New: func() any { return new(receiver) }}

func newReceiver(reads []state.Read, windowStates []state.WindowState, pending *state.Batch, secret state.Secret) *receiver {
	r := receivers.Get().(*receiver)
	r.reads, r.windowStates, r.pending, r.secret = reads, windowStates, pending, secret
	return r
}

func (r *receiver) free() {
	const maxGroups = 64 // further ones may belong to old definitions
	if len(r.groups) <= maxGroups {
		*r = receiver{groups: r.groups}
		receivers.Put(r)
	}
}

// states returns the empty states for reads of a group.
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

// receive decodes the reply to a lookup into the window states of its reads. If it is damaged, they have an error; a
// partial answer would be too low.
func (r *receiver) receive(l *lookup) {
	if err := r.take(l); err != nil {
		for _, i := range l.reads {
			r.windowStates[i] = state.WindowState{Err: err}
		}
	}
}

func (r *receiver) take(l *lookup) error {
	data, losses, err := l.reply() // read only
	if err != nil {
		return err
	}
	pending := r.pending != nil && !l.stored
	if len(data) == 0 && len(losses) == 0 && !pending {
		return nil
	}
	held := r.states(l.group)
	defer held.Empty()
	held.lookAt(r, l)
	held.Losses = losses
	if err := held.Merge(data); err != nil {
		return keyspace.NewError(l.key, err)
	}
	if pending {
		if err := r.overlay(held, l, data); err != nil {
			return err
		}
	}
	for n, i := range l.reads {
		if at := &held.looks[n]; at.total {
			held.Total(at.index, at.window, &r.windowStates[i])
		} else {
			held.Read(at.index, &r.reads[i], &r.windowStates[i])
		}
	}
	return nil
}

// states holds the states of some series of an entity.
type states struct {
	packed.View
	group string
	looks []look // by read
}

// look is what a read needs.
type look struct {
	series *state.Series
	total  bool
	index  int // of the series in the view
	window int // of its totals there
}

// lookAt prepares the states for the reads of a lookup.
func (s *states) lookAt(r *receiver, l *lookup) {
	s.Secret = r.secret
	if !s.looksAt(r, l) {
		s.looks = s.looks[:0]
		s.Clear()
		for _, i := range l.reads {
			s.look(r.reads[i].Series, r.totals(i))
		}
	}
	s.Begin()
	for n, i := range l.reads {
		if s.looks[n].total {
			s.Over(s.looks[n].index, r.reads[i].First, r.reads[i].Last)
		}
	}
}

// totals reports whether read i is answered by a total. Pending events change states, not totals.
func (r *receiver) totals(i int) bool {
	return r.reads[i].Total && r.pending == nil && packed.HasTotals(r.reads[i].Series)
}

// looksAt reports whether the reads of a lookup need the same series and windows as the previous ones.
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

// look adds a series to read.
func (s *states) look(series *state.Series, total bool) {
	if !total {
		s.looks = append(s.looks, look{series: series, index: s.Add(series)})
		return
	}
	added := look{series: series, total: true, index: s.AddTotals(series)}
	for _, before := range s.looks {
		if before.index == added.index && before.total {
			added.window++
		}
	}
	s.looks = append(s.looks, added)
}

// overlay applies the pending events to the state, which is decoded from data.
func (r *receiver) overlay(held *states, l *lookup, data []byte) error {
	ids := packed.View{Secret: held.Secret}
	for _, s := range l.ids {
		ids.Add(s)
	}
	ids.Begin()
	if err := ids.Merge(data); err != nil {
		return keyspace.NewError(l.key, fmt.Errorf("the ids: %w", err))
	}
	held.Overlay(r.pending, l.entity, &ids)
	return nil
}

// Lists of window states are long, and most states have one bucket. Recently used memory is in the CPU's caches; newly
// allocated memory is not.

// recycled are lists of empty window states with room for a few buckets each.
var recycled = sync.Pool{New: func() any { return new([]state.WindowState) }}

// maxRecycled and maxBuckets bound the lists, and the buckets of each state, that are kept for reuse: larger ones are
// rare.
const maxRecycled, maxBuckets = 1 << 10, 8

// newWindowStates makes n empty window states.
func newWindowStates(n int) []state.WindowState {
	list := recycled.Get().(*[]state.WindowState)
	if cap(*list) < n {
		return make([]state.WindowState, n)
	}
	return (*list)[:n]
}

// Recycle takes back window states that the caller no longer uses.
func (s *Store) Recycle(windowStates []state.WindowState) {
	if len(windowStates) == 0 || cap(windowStates) > maxRecycled {
		return
	}
	for i := range windowStates {
		room := windowStates[i].Buckets
		if cap(room) > maxBuckets {
			room = nil
		}
		clear(room)
		windowStates[i] = state.WindowState{Buckets: room[:0]}
	}
	recycled.Put(&windowStates)
}
