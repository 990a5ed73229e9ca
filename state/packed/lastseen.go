package packed

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/state"
)

// lastSeen holds values with the time of their last event. Above max, the values with the earliest times are dropped.
// Packed, each is the distance from the previous time, its length and the value.
type lastSeen struct {
	max    int
	times  map[string]int64
	sorted []seen // by time, then by value
}

func init() {
	packings[state.LastSeen] = packing{
		empty: func(s *state.Series, _ state.Secret) State {
			return &lastSeen{max: s.Max, times: map[string]int64{}}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return appendSeen(dst, mutation.Num-before, string(mutation.Member)), mutation.Num
		},
	}
}

type seen struct {
	time  int64
	value string
}

func (a seen) compare(b seen) int {
	return cmp.Or(cmp.Compare(a.time, b.time), strings.Compare(a.value, b.value))
}

func (l *lastSeen) Apply(mutation *state.Mutation) {
	if old, known := l.times[string(mutation.Member)]; !known || mutation.Num > old {
		l.meet(string(mutation.Member), mutation.Num)
	}
}

func (l *lastSeen) empty() {
	clear(l.times)
	l.sorted = l.sorted[:0]
}

// meet adds a value that has no event at that time or later.
func (l *lastSeen) meet(value string, time int64) {
	if old, known := l.times[value]; known {
		i, _ := slices.BinarySearchFunc(l.sorted, seen{old, value}, seen.compare)
		l.sorted = slices.Delete(l.sorted, i, i+1)
	}
	l.times[value] = time
	i := len(l.sorted)
	if i > 0 && time <= l.sorted[i-1].time { // mostly it is the latest
		i, _ = slices.BinarySearchFunc(l.sorted, seen{time, value}, seen.compare)
	}
	l.sorted = slices.Insert(l.sorted, i, seen{time, value})
	l.drop(len(l.sorted) - l.max)
}

func (l *lastSeen) Merge(packed []byte) error {
	r, time := decoder{packed: packed}, int64(packedEpoch)
	for r.more() {
		time += r.varint()
		member := r.bytes(r.uvarint())
		if old, known := l.times[string(member)]; r.err == nil && (!known || time > old) {
			l.meet(view(member), time)
		}
	}
	return r.err
}

func (l *lastSeen) Append(dst []byte) []byte {
	before := int64(packedEpoch)
	for _, s := range l.sorted {
		dst = appendSeen(dst, s.time-before, s.value)
		before = s.time
	}
	return dst
}

func appendSeen(dst []byte, distance int64, value string) []byte {
	dst = binary.AppendVarint(dst, distance)
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// drop drops the n values with the earliest times.
func (l *lastSeen) drop(n int) {
	for ; n > 0; n-- {
		delete(l.times, l.sorted[0].value)
		l.sorted = l.sorted[1:]
	}
}

// before returns the number of values whose last event is before a time.
func (l *lastSeen) before(time int64) int {
	i, _ := slices.BinarySearchFunc(l.sorted, seen{time: time}, seen.compare)
	return i
}

func (l *lastSeen) Read(r *state.Read) state.WindowState {
	from, to := l.before(r.First), len(l.sorted)
	if r.Last < math.MaxInt64 {
		to = l.before(r.Last + 1)
	}
	return state.WindowState{Count: int64(max(0, to-from)), After: int64(len(l.sorted) - to)}
}

func (l *lastSeen) Prune(first int64) (empty bool) {
	l.drop(l.before(first))
	return len(l.sorted) == 0
}

func (l *lastSeen) entries() (list []Entry) {
	for _, s := range l.sorted {
		list = append(list, Entry{Member: &s.value, Tiles: []int64{s.time}})
	}
	return list
}
