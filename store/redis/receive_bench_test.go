package redisstore

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// BenchmarkReceive decodes a key for nine reads: numbers of a month and a few members, compacted
// except for the last three events.
func BenchmarkReceive(b *testing.B) {
	var data []byte
	var packer packed.Packer
	add := func(day int64) {
		batch := &state.Batch{Ranges: make([]state.PartitionRange, 1)}
		fill(batch, 0, event{device: "d1", user: string(rune('a' + day%5)), time: day * 86_400_000, cents: day * 100})
		for i := range batch.Mutations {
			if batch.Mutations[i].Series == ever || batch.Mutations[i].Series == approx {
				continue
			}
			packer.Begin(batch.Mutations[i].Series)
			packer.Add(&batch.Mutations[i])
			data = packer.End(data)
		}
	}
	for day := range int64(8) {
		add(20_000 + day)
	}
	known := func(tag uint32) *state.Series {
		for _, s := range allSeries {
			if s.Tag() == tag {
				return s
			}
		}
		return nil
	}
	data, err := new(packed.Compactor).Compact(nil, data, known, func(uint32) bool { return false }, 0, packed.Nonce{1})
	if err != nil {
		b.Fatal(err)
	}
	add(20_007)
	add(20_007)
	add(20_008)
	l := lookup{reading: reading{keys: []string{"key"}, one: redis.NewStringCmd(b.Context(), "get", "key")}}
	l.one.SetVal(string(data))
	var reads []state.Read
	for _, s := range []*state.Series{events, amount, weight, smallest, biggest, users, recent} {
		l.reads = append(l.reads, len(reads))
		reads = append(reads, state.Read{Series: s, Entity: "d1", First: 20_002 * day / s.Tile, Last: 20_008 * day / s.Tile})
	}
	windowStates := make([]state.WindowState, len(reads))
	b.ReportAllocs()
	for b.Loop() {
		r := newReceiver(reads, windowStates, nil, state.Secret{})
		r.receive(&l)
		r.free()
	}
	if err := windowStates[0].Err; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(data)), "bytes")
}
