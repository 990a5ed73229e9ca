package memory

import (
	"encoding/binary"

	"github.com/weir-stream/weir/features/kinds"
)

// log is the log of an entity; see kinds.Log. What is trimmed at its front is
// left where it is until the memory has to grow: the header moves up.
type log struct {
	max     int
	held    kinds.Log
	records int
}

func (l *log) apply(op *kinds.Op) (refusal string) {
	if l.held == nil {
		l.held = append(l.held, kinds.LogHeader...)
	}
	l.held = append(l.held, op.Member...)
	l.records++
	for ; l.records > l.max; l.records-- {
		time, size := l.first()
		if cut, ok := l.held.CutOff(); !ok || time > cut {
			l.trim(size)
			l.held = kinds.AppendLogTime(l.held[:1], time)[:len(l.held)]
		} else {
			l.trim(size)
		}
	}
	return ""
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

func (l *log) read(*kinds.Read) kinds.Slice { return kinds.Slice{Log: l.held} }

// prune drops the records at the log's front that came before first.
func (l *log) prune(first int64) (empty bool) {
	for l.records > 0 {
		time, size := l.first()
		if time >= first {
			break
		}
		l.trim(size)
		l.records--
	}
	return l.records == 0
}
