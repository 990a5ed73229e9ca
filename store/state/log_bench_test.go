package state

import (
	"testing"

	"github.com/weir-stream/weir/features/kinds"
)

// An event that comes late is put in its place in a full log.
func BenchmarkLogLate(b *testing.B) {
	s := &kinds.Series{ID: "log", Measure: kinds.Record, Tile: 1, Max: 1000}
	l := New(s)
	at := int64(100 * day)
	op := func(time int64) *kinds.Op {
		record := kinds.AppendLogColumn(kinds.AppendLogTime(nil, time), kinds.NewColumn(1, kinds.Int, 0), kinds.Value{Type: kinds.Int, Num: time})
		return &kinds.Op{Series: s, Member: kinds.AppendLogRecord(nil, record)}
	}
	for range 1000 {
		at += 1000
		l.Apply(op(at))
	}
	for b.Loop() {
		at += 1000
		l.Apply(op(at))
		l.Apply(op(at - 5500))
		l.Prune(0)
	}
}
