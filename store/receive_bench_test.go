package store

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/store/state"
)

// BenchmarkReceive takes what a key holds apart for nine reads: numbers of a
// month and a few members, compacted but for the last three events.
func BenchmarkReceive(b *testing.B) {
	var packed []byte
	var packer state.Packer
	add := func(day int64) {
		batch := &kinds.Batch{Sources: make([]kinds.Source, 1)}
		fill(batch, 0, event{device: "d1", user: string(rune('a' + day%5)), time: day * 86_400_000, cents: day * 100})
		for i := range batch.Ops {
			if batch.Ops[i].Series == ever || batch.Ops[i].Series == approx {
				continue
			}
			packer.Begin(batch.Ops[i].Series)
			packer.Add(&batch.Ops[i])
			packed = packer.End(packed)
		}
	}
	for day := range int64(8) {
		add(20_000 + day)
	}
	known := func(tag uint32) *kinds.Series {
		for _, s := range allSeries {
			if s.Tag() == tag {
				return s
			}
		}
		return nil
	}
	packed, err := new(state.Compactor).Compact(nil, packed, known, func(uint32) bool { return false }, 0, state.Nonce{1})
	if err != nil {
		b.Fatal(err)
	}
	add(20_007)
	add(20_007)
	add(20_008)
	l := lookup{held: redis.NewStringCmd(b.Context(), "get", "key")}
	l.held.SetVal(string(packed))
	var reads []kinds.Read
	for _, s := range []*kinds.Series{events, amount, weight, smallest, biggest, users, recent} {
		l.reads = append(l.reads, len(reads))
		reads = append(reads, kinds.Read{Series: s, Entity: "d1", First: 20_002 * day / s.Tile, Last: 20_008 * day / s.Tile})
	}
	slices := make([]kinds.Slice, len(reads))
	b.ReportAllocs()
	for b.Loop() {
		l.receive(reads, slices, nil, state.Secret{})
	}
	if err := slices[0].Err; err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(len(packed)), "bytes")
}
