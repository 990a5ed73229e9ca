package packed

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/weir-stream/weir/state"
)

// log is the log of an entity; see state.Log. It keeps the last max records, ordered by time, and by arrival within one
// time. They may come in any order: a record older than a dropped one is dropped, too.
//
// Packed, it is its records; if a cap has dropped some, a header comes first with the time up to which it did. Most
// records come in order and are appended; late ones are sorted in when the log is read or packed, or has grown by half.
// Trimming moves the header up; the space before it is reused only when the memory has to grow.
type log struct {
	secret  state.Secret // for functions of values that are chosen by their hashes
	max     int
	bytes   int // the greatest packed length
	held    state.Log
	records int
	late    int   // bytes of late records, after those in order
	oldest  int64 // time of the first record, if there is one
	latest  int64 // time of the last record that is in order
	cutOff  int64 // the time up to which a cap has dropped records; state.MinTime if none
	start   int64 // position of the first record; see state.GrowingLog
}

func init() {
	packings[state.Logs] = packing{
		empty: func(s *state.Series, secret state.Secret) State {
			return &log{secret: secret, max: s.Max, bytes: s.Bytes, cutOff: state.MinTime}
		},
		appendMutation: func(dst []byte, mutation *state.Mutation, before int64, _ state.Secret) ([]byte, int64) {
			return append(dst, mutation.Member...), before
		},
	}
}

func (l *log) Apply(mutation *state.Mutation) {
	_, width := binary.Uvarint(mutation.Member)
	l.append(mutation.Member, state.LogTime(mutation.Member[width:]))
}

// append appends one record, with its length, of a time.
func (l *log) append(record []byte, time int64) {
	if l.held == nil {
		l.held = append(l.held, state.LogHeader...)
	}
	if time < l.cutOff {
		return
	}
	inOrder := l.late == 0 && (l.records == 0 || time >= l.latest)
	if l.records == 0 {
		l.oldest = time
	}
	l.held = append(l.held, record...)
	l.records++
	if inOrder {
		l.latest = time
	} else {
		l.late += len(record)
	}
	switch over := l.records - l.max; {
	case over <= 0:
	case inOrder:
		l.dropFirst()
	case over > l.max/2:
		l.order()
	}
}

// cut notes that the cap dropped records up to a time.
func (l *log) cut(time int64) {
	if time > l.cutOff {
		l.cutOff = time
		l.held = state.AppendLogTime(l.held[:1], time)[:len(l.held)]
	}
}

// order sorts the records by time, and drops those that exceed the cap.
func (l *log) order() {
	if l.late == 0 {
		return
	}
	held, at, end := l.held, len(state.LogHeader), len(l.held)-l.late
	l.start += int64(len(held)) // after the positions of all earlier records
	late := spans(held, end)
	slices.SortStableFunc(late, func(a, b span) int { return cmp.Compare(a.time, b.time) })
	l.latest, l.late = max(l.latest, late[len(late)-1].time), 0
	for ; l.records > l.max; l.records-- {
		if at < end && (len(late) == 0 || spanAt(held, at).time <= late[0].time) {
			first := spanAt(held, at)
			l.cut(first.time)
			at = first.to
		} else {
			l.cut(late[0].time)
			late = late[1:]
		}
	}
	l.held = append(make(state.Log, 0, len(held)), held[:len(state.LogHeader)]...)
	for _, s := range late {
		from := at
		for at < end {
			next := spanAt(held, at)
			if next.time > s.time {
				break
			}
			at = next.to
		}
		l.held = append(append(l.held, held[from:at]...), held[s.from:s.to]...)
	}
	l.held = append(l.held, held[at:end]...)
	l.oldest = l.first().time
}

// span is the position of a record, with its length.
type span struct {
	time     int64
	from, to int
}

func spanAt(held state.Log, at int) span {
	size, width := binary.Uvarint(held[at:])
	return span{state.LogTime(held[at+width:]), at, at + width + int(size)}
}

// spans returns the spans of the records from one on.
func spans(held state.Log, from int) (list []span) {
	for from < len(held) {
		list = append(list, spanAt(held, from))
		from = list[len(list)-1].to
	}
	return list
}

// A record is at least as long as its time, so no record has the length of a header.
const logCut = 1

func (l *log) Merge(packed []byte) error {
	r := decoder{packed: packed}
	for r.more() {
		before := r.at
		size := r.uvarint()
		switch {
		case r.err != nil:
		case size == logCut:
			if header := state.Log(r.bytes(uint64(len(state.LogHeader)))); r.err == nil {
				l.mergeCut(header)
			}
		case size < logTime:
			r.fail()
		default:
			if record := r.bytes(size); r.err == nil {
				l.append(packed[before:r.at], state.LogTime(record))
			}
		}
	}
	return r.err
}

// mergeCut merges the header of another log, with the time up to which a cap dropped records.
func (l *log) mergeCut(header state.Log) {
	if l.held == nil {
		l.held = append(l.held, state.LogHeader...)
	}
	time, ok := header.CutOff()
	if !ok {
		return
	}
	l.order()
	l.dropBefore(time)
	l.cut(time)
}

// logTime is the length of a record's time, in bytes.
const logTime = 6

func (l *log) Append(dst []byte) []byte {
	if l.held == nil {
		return dst
	}
	l.order()
	if l.cutOff != state.MinTime {
		dst = append(append(dst, logCut), l.held[:len(state.LogHeader)]...)
	}
	return append(dst, l.held[len(state.LogHeader):]...)
}

// first returns the span of the log's first record.
func (l *log) first() span { return spanAt(l.held, len(state.LogHeader)) }

// squeeze drops the earliest records, as the cap does, while the log is too long.
func (l *log) squeeze() bool {
	l.order()
	before, most := l.records, l.bytes
	if len(l.held) < most { // others need the bytes
		most = len(l.held) / 2
	}
	for l.records > 0 && len(l.held) >= most {
		l.dropFirst()
	}
	return l.records < before
}

// dropFirst drops the first record to save space.
func (l *log) dropFirst() {
	time := l.oldest
	l.trim()
	l.cut(time)
}

// trim removes the first record, which is longer than the header.
func (l *log) trim() {
	first := l.first()
	size := first.to - first.from
	copy(l.held[size:], l.held[:len(state.LogHeader)])
	l.held = l.held[size:]
	l.start += int64(size)
	if l.records--; l.records > 0 {
		l.oldest = l.first().time
	}
}

// LogOf returns the log in a State that is one.
func LogOf(s State) state.GrowingLog {
	l := s.(*log)
	l.order()
	return state.GrowingLog{Log: l.held, Start: l.start, Cut: l.cutOff}
}

func (l *log) Read(*state.Read) state.WindowState {
	l.order()
	return state.WindowState{Log: l.held, Secret: l.secret}
}

// Prune drops the records before first.
func (l *log) Prune(first int64) (empty bool) {
	l.order()
	l.dropBefore(first)
	return l.records == 0 && l.cutOff < first
}

// dropBefore drops the records before a time; all records must be in order.
func (l *log) dropBefore(first int64) {
	for l.records > 0 && l.oldest < first {
		l.trim()
	}
}
