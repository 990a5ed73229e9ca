package state

import (
	"encoding/binary"

	"github.com/weir-stream/weir/features/kinds"
)

// log is the log of an entity; see kinds.Log. Packed it is its records; where a
// cap has cut some off, a header comes first that says up to when. What is
// trimmed at its front is left where it is until the memory has to grow: the
// header moves up.
type log struct {
	max     int
	held    kinds.Log
	records int
}

func (l *log) Apply(op *kinds.Op) { l.append(op.Member) }

// append takes in one record.
func (l *log) append(record []byte) {
	if l.held == nil {
		l.held = append(l.held, kinds.LogHeader...)
	}
	l.held = append(l.held, record...)
	l.records++
	for ; l.records > l.max; l.records-- {
		time, size := l.first()
		l.trim(size)
		l.cut(time)
	}
}

// cut notes that records up to a time were cut off.
func (l *log) cut(time int64) {
	if cut, ok := l.held.CutOff(); !ok || time > cut {
		l.held = kinds.AppendLogTime(l.held[:1], time)[:len(l.held)]
	}
}

// A record is at least its time long, so no record's length is that of a header.
const logCut = 1

func (l *log) Merge(packed []byte) error {
	r := reader{packed: packed}
	for r.more() {
		before := r.at
		size := r.uvarint()
		switch {
		case r.err != nil:
		case size == logCut:
			if header := kinds.Log(r.bytes(uint64(len(kinds.LogHeader)))); r.err == nil {
				if l.held == nil {
					l.held = append(l.held, kinds.LogHeader...)
				}
				if time, ok := header.CutOff(); ok {
					l.cut(time)
				}
			}
		case size < logTime:
			r.fail()
		default:
			if r.bytes(size); r.err == nil {
				l.append(packed[before:r.at])
			}
		}
	}
	return r.err
}

// logTime is the length of a record's time, in bytes.
const logTime = 6

func (l *log) Append(dst []byte) []byte {
	if l.held == nil {
		return dst
	}
	if _, ok := l.held.CutOff(); ok {
		dst = append(append(dst, logCut), l.held[:len(kinds.LogHeader)]...)
	}
	return append(dst, l.held[len(kinds.LogHeader):]...)
}

// first is the time of the log's first record, and the record's size with its
// length.
func (l *log) first() (time int64, size int) {
	_ = l.held.Records(func(r kinds.LogRecord) bool { time = r.Time; return false })
	n, width := binary.Uvarint(l.held[len(kinds.LogHeader):])
	return time, int(n) + width
}

// trim drops the first record, which is longer than the header.
func (l *log) trim(size int) {
	copy(l.held[size:], l.held[:len(kinds.LogHeader)])
	l.held = l.held[size:]
}

func (l *log) Read(*kinds.Read) kinds.Slice { return kinds.Slice{Log: l.held} }

// Prune drops the records at the log's front that came before first.
func (l *log) Prune(first int64) (empty bool) {
	for l.records > 0 {
		time, size := l.first()
		if time >= first {
			break
		}
		l.trim(size)
		l.records--
	}
	cut, ok := l.held.CutOff()
	return l.records == 0 && (!ok || cut < first)
}
