package record

import (
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxDedup is the longest Stream.Dedup.
const MaxDedup = 7 * 24 * time.Hour

// MaxEarlier is how many offsets before a record one is looked for that it repeats, at most. It bounds the memory: see
// EarlierBytes.
const MaxEarlier = 1 << 20

// EarlierBytes is how many bytes Earlier takes of an event at most, while its events are growing in number: 48 otherwise.
const EarlierBytes = 96

// Earlier tells which events repeat one of an earlier record of their partition, for streams with Dedup. That depends on
// the log and the definitions only, so whoever reads the log finds the same, from whatever offset on.
//
// The time of the log at a record is the greatest timestamp up to it. An event of a record repeats that of an earlier one
// if they are of the same stream and have the same ID, and if the earlier record's
//
//   - timestamp is at most Dedup before that of the record,
//   - time of the log is at most Dedup before that at the record,
//   - offset is at most MaxEarlier before that of the record.
//
// The time of the log never goes back, so the earlier records that matter are those from some offset on, whatever their
// timestamps: EarlierFrom. The timestamps are compared as well because one record from far in the future stops the time of
// the log, and IDs must be free to come again.
//
// It does not matter whether the earlier event was itself a repetition: else all of the log would matter. Records that
// are poison are not events. Events without an ID, or with an empty one, repeat none. Copies of dead letters are compared
// with each other only: their originals, in the log before them, may be usable today.
//
// Records must come in order, and each once. The nil Earlier is that of a topic without such streams: nothing repeats.
// It is not safe for concurrent use.
type Earlier struct {
	// Cut counts the events that were forgotten because of MaxEarlier alone.
	Cut int64

	secret  state.Secret
	passed  uint
	windows []earlierEvents
	offset  int64 // of the record that has come
	newest  int64 // the time of the log, in ms
}

// NewEarlier returns the Earlier of a partition of a topic, nil if no stream of it has Dedup. Whoever writes events may
// choose their IDs, so these are kept as hashes with a secret.
func NewEarlier(streams []*Stream, topic string, secret state.Secret) *Earlier {
	e := &Earlier{secret: secret, newest: state.MinTime}
	for _, s := range streams {
		if s.In(topic) != nil && s.Dedup > 0 {
			e.windows = append(e.windows, newEarlierEvents(s))
		}
	}
	if e.windows == nil {
		return nil
	}
	return e
}

// Reach returns the longest Dedup of a topic's streams, in ms; 0 if none has it.
func Reach(streams []*Stream, topic string) (ms int64) {
	for _, s := range streams {
		if s.In(topic) != nil {
			ms = max(ms, s.Dedup.Milliseconds())
		}
	}
	return ms
}

// Pass tells that a record has come, whatever is in it, by its offset and its timestamp in ms.
func (e *Earlier) Pass(offset, timestamp int64) {
	if e == nil {
		return
	}
	far := offset-e.offset > MaxEarlier || timestamp > e.newest && uint64(timestamp)-uint64(e.newest) > uint64(MaxDedup.Milliseconds())
	e.offset, e.newest = offset, max(e.newest, timestamp)
	// A processor waits for the memory of several slots at once, if it may free several.
	if e.passed++; far || e.passed%forgetEvery == 0 {
		for i := range e.windows {
			e.Cut += e.windows[i].forget(uint32(offset), uint32(e.newest), far)
		}
	}
}

// forgetEvery is after how many records events are forgotten. Until then they are known to be too old.
const forgetEvery = 16

// Repeats reports whether an event of the record that has come repeats one of an earlier record, and remembers it. Call it
// only for an event of a record that is not poison for any stream. copied is true for a copy of a dead letter that does
// not count in all series.
func (e *Earlier) Repeats(event *Event, copied bool) bool {
	if e == nil || len(event.ID) == 0 {
		return false
	}
	for i := range e.windows {
		if w := &e.windows[i]; w.stream == event.Stream.Name {
			hash := e.secret.Hash(event.ID)
			if copied {
				hash = ^hash
			}
			return w.add(earlierEvent{hash: hash, timestamp: event.Now, newest: uint32(e.newest), offset: uint32(e.offset)})
		}
	}
	return false
}

// earlierEvent is what is remembered of an event. Of its offset and of the time of the log there are the last 32 bits:
// those of the events that are remembered are less than 2^31 apart.
type earlierEvent struct {
	hash           uint64
	timestamp      int64
	newest, offset uint32
	// before is the place, plus 1, of the newest event of this hash before it that has a greater timestamp; 0 for none. It
	// may be forgotten, see earlierEvents.older. Those with smaller timestamps are never needed again.
	before uint32
	passed bool // a later event has the hash
}

// earlierEvents are those of a stream, in a ring in the order of their offsets. The slots of a hash table hold the newest
// event of each hash: the upper half of the hash, and the place in the ring, plus 1.
type earlierEvents struct {
	stream      string
	reach       uint32 // ms
	ring        []earlierEvent
	first, size uint32 // where the oldest is, and how many there are
	slots       []uint64
	shift       int // from the upper half of a hash to a slot
}

const leastEarlier = 64

func newEarlierEvents(s *Stream) earlierEvents {
	w := earlierEvents{stream: s.Name, reach: uint32(min(s.Dedup, MaxDedup).Milliseconds())}
	w.grow()
	return w
}

// grow makes room for twice as many events.
func (w *earlierEvents) grow() {
	was := *w
	length := max(leastEarlier, 2*len(was.ring))
	w.ring, w.slots, w.first, w.shift = make([]earlierEvent, length), make([]uint64, 2*length), 0, 32
	for n := len(w.slots); n > 1; n /= 2 {
		w.shift--
	}
	for i := range w.size {
		e := was.ring[(was.first+i)&uint32(len(was.ring)-1)]
		if e.before > 0 {
			if !was.older(e.before-1, was.first+i) {
				e.before = 0
			} else {
				e.before = (e.before-1-was.first)&uint32(len(was.ring)-1) + 1
			}
		}
		w.ring[i] = e
		if !e.passed {
			at, _ := w.find(e.hash)
			w.slots[at] = slotOf(e.hash, i)
		}
	}
}

func slotOf(hash uint64, place uint32) uint64 { return hash>>32<<32 | uint64(place+1) }

// older reports whether the event at a place is still remembered and older than the one at another place. Otherwise the
// place is free, or that of a newer event.
func (w *earlierEvents) older(place, than uint32) bool {
	mask := uint32(len(w.ring) - 1)
	return (place-w.first)&mask < (than-w.first)&mask
}

// find returns the slot of a hash, or else the free one where it belongs.
func (w *earlierEvents) find(hash uint64) (at uint32, found bool) {
	mask := uint32(len(w.slots) - 1)
	for at = uint32(hash>>32) >> w.shift; ; at = (at + 1) & mask {
		switch slot := w.slots[at]; {
		case slot == 0:
			return at, false
		case slot>>32 == hash>>32 && w.ring[uint32(slot)-1].hash == hash:
			return at, true
		}
	}
}

// add adds the newest event, and reports whether it repeats another one.
func (w *earlierEvents) add(e earlierEvent) (repeats bool) {
	if int(w.size) == len(w.ring) {
		w.grow()
	}
	place := (w.first + w.size) & uint32(len(w.ring)-1)
	at, found := w.find(e.hash)
	if found {
		other := uint32(w.slots[at]) - 1
		w.ring[other].passed = true
		for {
			o := &w.ring[other]
			if old, cut := w.outdated(o, e.offset, e.newest); old || cut {
				break
			}
			repeats = repeats || o.timestamp >= e.timestamp || uint64(e.timestamp)-uint64(o.timestamp) <= uint64(w.reach)
			if o.timestamp > e.timestamp {
				e.before = other + 1
				break
			}
			if o.before == 0 || !w.older(o.before-1, other) {
				break
			}
			other = o.before - 1
		}
	}
	w.slots[at] = slotOf(e.hash, place)
	w.ring[place] = e
	w.size++
	return repeats
}

// forget forgets the events that no further one can repeat once the log is at an offset and a time; far means that both are
// further away than they can tell. It returns how many were forgotten because of their offset alone.
func (w *earlierEvents) forget(offset, newest uint32, far bool) (cut int64) {
	for w.size > 0 {
		e := &w.ring[w.first]
		old, onlyCut := w.outdated(e, offset, newest)
		if !far && !old && !onlyCut {
			break
		}
		if onlyCut && !far {
			cut++
		}
		if !e.passed {
			at, _ := w.find(e.hash)
			w.free(at)
		}
		w.first = (w.first + 1) & uint32(len(w.ring)-1)
		w.size--
	}
	return cut
}

// outdated reports whether an event cannot be repeated any more once the log is at an offset and a time: it is too old, or
// only cut off by its offset.
func (w *earlierEvents) outdated(e *earlierEvent, offset, newest uint32) (old, cut bool) {
	if newest-e.newest > w.reach {
		return true, false
	}
	return false, offset-e.offset > MaxEarlier
}

// free empties a slot, and moves those after it that would no longer be found.
func (w *earlierEvents) free(at uint32) {
	mask := uint32(len(w.slots) - 1)
	for next := (at + 1) & mask; w.slots[next] != 0; next = (next + 1) & mask {
		home := uint32(w.slots[next]>>32) >> w.shift
		if (next-home)&mask >= (next-at)&mask {
			w.slots[at] = w.slots[next]
			at = next
		}
	}
	w.slots[at] = 0
}
