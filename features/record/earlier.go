package record

import (
	"math/bits"
	"time"

	"github.com/weir-stream/weir/state"
)

// MaxDedup is the longest Stream.Dedup.
const MaxDedup = 7 * 24 * time.Hour

// MaxEarlier is how many offsets before a record one is looked for that it repeats, at most. It bounds the memory: see
// EarlierBytes.
const MaxEarlier = 1 << 20

// EarlierBytes is how many bytes Earlier takes of an event, and up to twice as many while its events are growing in number.
const EarlierBytes = 36

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
// are poison are not events. Events without an ID repeat none. Copies of dead letters are compared with each other only:
// their originals, in the log before them, may be usable today.
//
// Records must come in order, and each once. The nil Earlier is that of a topic without such streams: nothing repeats.
// It is not safe for concurrent use.
type Earlier struct {
	// Cut counts the events that were forgotten because of MaxEarlier alone.
	Cut int64

	secret  state.Secret
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
	for i := range e.windows {
		e.Cut += e.windows[i].forget(uint32(offset), uint32(e.newest), far)
	}
}

// Repeats reports whether an event of the record that has come repeats one of an earlier record, and remembers it. Call it
// only for an event of a record that is not poison for any stream, and once for each stream. copied is true for a copy of a
// dead letter that does not count in all series.
func (e *Earlier) Repeats(event *Event, copied bool) bool {
	if e == nil || event.ID == nil {
		return false
	}
	for i := range e.windows {
		if w := &e.windows[i]; w.stream == event.Stream.Name {
			hash := e.secret.Hash(event.ID)
			if copied {
				hash = ^hash
			}
			came := earlierEvent{hash: hash, timestamp: event.Now, newest: uint32(e.newest), offset: uint32(e.offset)}
			repeats := w.repeats(&came)
			e.Cut += w.forget(came.offset+1, came.newest, false) // of no use for the next record: MaxEarlier are left with this one
			w.add(came)
			return repeats
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
	before         uint32 // the number of the next older event of its chain
}

// earlierEvents are those of a stream, in the order of their offsets. They are numbered, modulo 2^32, and the last bits of
// a number are the place in the ring. Those whose hashes begin alike are a chain from the newest to the oldest, as in the
// window of LZ77: nothing is done to it to forget an event, because a chain ends where a number is not that of an older
// event that is remembered.
//
// Among many events the memory is what takes long: a chain is some place in megabytes, and an event another one. So most
// new IDs are told by a filter that a cache has room for, and events are added to their chains some at a time, because
// the processor waits for many places at once where none depends on another. There are half as many chains as places in the
// ring: they take less of a cache, and few events look at one.
type earlierEvents struct {
	stream      string
	reach       uint32 // ms
	ring        []earlierEvent
	first, size uint32   // the number of the oldest, and how many there are
	chains      []uint32 // the numbers of their newest events
	shift       int      // from a hash to its chain
	chained     uint32   // the number of the oldest that is not in its chain yet
	met         hashFilter
	turned      uint32 // the number of the first event that came since the filter's last turn
}

// leastEarlier is for how many events there is room at least, and how many are added to their chains at a time.
const leastEarlier = 64

func newEarlierEvents(s *Stream) earlierEvents {
	w := earlierEvents{stream: s.Name, reach: uint32(min(s.Dedup, MaxDedup).Milliseconds())}
	w.grow()
	return w
}

// grow makes room for twice as many events.
func (w *earlierEvents) grow() {
	was, size := w.ring, w.size
	length := max(leastEarlier, 2*len(was))
	w.ring, w.chains = make([]earlierEvent, length), make([]uint32, length/2)
	w.shift = 65 - bits.Len(uint(len(w.chains)))
	w.met, w.chained = newHashFilter(length), w.first
	for w.size = 0; w.size < size; {
		e := was[(w.first+w.size)&uint32(len(was)-1)]
		w.repeats(&e) // for what leaves its chain
		w.add(e)
	}
}

// repeats reports whether the event that comes next repeats one. What it makes superfluous leaves its chain: else an ID
// that comes again and again would have a long one.
func (w *earlierEvents) repeats(e *earlierEvent) (repeats bool) {
	if !w.met.mayHave(e.hash) {
		return false
	}
	w.chain()
	link, age := &w.chains[e.hash>>w.shift], w.size
	for !repeats && *link-w.first < age {
		age = *link - w.first
		o := &w.ring[*link&uint32(len(w.ring)-1)]
		if o.hash == e.hash {
			repeats = o.timestamp >= e.timestamp || uint64(e.timestamp)-uint64(o.timestamp) <= uint64(w.reach)
			if o.timestamp <= e.timestamp { // what repeats it repeats e, too
				*link = o.before
				continue
			}
		}
		link = &o.before
	}
	return repeats
}

// add adds the newest event.
func (w *earlierEvents) add(e earlierEvent) {
	if int(w.size) == len(w.ring) {
		w.grow()
	}
	w.ring[(w.first+w.size)&uint32(len(w.ring)-1)] = e
	w.size++
	w.met.add(e.hash)
	if w.first+w.size-w.chained == leastEarlier {
		w.chain()
	}
}

// chain adds the events that came since it was last called to their chains, also those that are forgotten by now: they end
// chains of which all older events are forgotten, too.
func (w *earlierEvents) chain() {
	for ; w.chained != w.first+w.size; w.chained++ {
		e := &w.ring[w.chained&uint32(len(w.ring)-1)]
		newest := &w.chains[e.hash>>w.shift]
		e.before, *newest = *newest, w.chained
	}
}

// forget forgets the events that no further one can repeat once the log is at an offset and a time; far means that both are
// further away than they can tell. It returns how many were forgotten because of their offset alone.
func (w *earlierEvents) forget(offset, newest uint32, far bool) (cut int64) {
	for w.size > 0 {
		e := &w.ring[w.first&uint32(len(w.ring)-1)]
		if old := newest-e.newest > w.reach; !far && !old {
			if offset-e.offset <= MaxEarlier {
				break
			}
			cut++
		}
		w.first, w.size = w.first+1, w.size-1
	}
	// Not more often than once for as many events as it has words, which a turn goes over.
	if next := w.first + w.size; int32(w.first-w.turned) >= 0 && next-w.turned >= uint32(len(w.met)) {
		w.met.turn()
		w.turned = next
	}
	return cut
}

// hashFilter is a Bloom filter in which the bits of a hash are in one word, so that it takes one access to memory (Putze,
// Sanders and Singler, "Cache-, Hash- and Space-Efficient Bloom Filters", 2007). It forgets what was added before the last
// turn but one.
type hashFilter []struct{ now, before uint64 } // since the last turn, and before it

// hashesPerWord is for how many hashes of an age there is a word: with 3 bits of each, some 3% of those that were not added
// are taken for such.
const hashesPerWord = 8

// newHashFilter returns a filter for a number of hashes between two turns, a power of 2.
func newHashFilter(hashes int) hashFilter {
	return make(hashFilter, hashes/hashesPerWord)
}

// mayHave reports false only if a hash is not remembered.
func (f hashFilter) mayHave(hash uint64) bool {
	word, mask := f.place(hash)
	return f[word].now&mask == mask || f[word].before&mask == mask
}

func (f hashFilter) add(hash uint64) {
	word, mask := f.place(hash)
	f[word].now |= mask
}

// place returns where the bits of a hash are.
func (f hashFilter) place(hash uint64) (word, mask uint64) {
	return hash >> 18 & uint64(len(f)-1), 1<<(hash&63) | 1<<(hash>>6&63) | 1<<(hash>>12&63)
}

func (f hashFilter) turn() {
	for i := range f {
		f[i].now, f[i].before = 0, f[i].now
	}
}
