package packed

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// BenchmarkLogLate sorts late events into a full log.
func BenchmarkLogLate(b *testing.B) {
	s := &state.Series{ID: "log", Measure: state.Record, Tile: 1, Max: 1000}
	l := New(s)
	at := int64(100 * day)
	mutation := func(time int64) *state.Mutation {
		record := state.AppendLogColumn(state.AppendLogTime(nil, time), state.NewColumn(1, value.Int, 0), value.Value{Type: value.Int, Num: time})
		return &state.Mutation{Series: s, Text: &state.Text{Member: state.AppendLogRecord(nil, record)}}
	}
	for range 1000 {
		at += 1000
		l.Apply(mutation(at))
	}
	for b.Loop() {
		at += 1000
		l.Apply(mutation(at))
		l.Apply(mutation(at - 5500))
		l.Prune(0)
	}
}
