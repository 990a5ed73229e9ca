package fetch

import (
	"fmt"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// eventBatches is n events with values of about 220 bytes, in batches of 500.
func eventBatches(t testing.TB, codec compress.Compression, n int) []byte {
	var batches []testBatch
	for base := 0; base < n; base += 500 {
		b := testBatch{base: int64(base), codec: codec}
		for i := range min(500, n-base) {
			b.records = append(b.records, kmsg.Record{
				OffsetDelta: int32(i), TimestampDelta64: int64(i), Key: fmt.Appendf(nil, "user-%d", i%97),
				Value: fmt.Appendf(nil, `{"user":"user-%d","amount":%d.%02d,"padding":"%s"}`, i%97, base, i%100, strings.Repeat("x", 170)),
			})
		}
		batches = append(batches, b)
	}
	return encode(t, batches...)
}

func drain(t testing.TB, d *Decoder, p *PartitionData) {
	var r Record
	for d.Reset(p); ; {
		ok, err := d.Next(&r)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	const records = 4000
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		b.Run(codec.String(), func(b *testing.B) {
			p := &PartitionData{records: eventBatches(b, codec, records)}
			var d Decoder
			b.ReportAllocs()
			for b.Loop() {
				drain(b, &d, p)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/records, "ns/record")
		})
	}
}

func TestDecodeDoesNotAllocate(t *testing.T) {
	const records = 4000
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		limit := 0.0
		if codec == compress.Gzip || codec == compress.Lz4 || codec == compress.Zstd {
			// These keep their state in pools, which cost a few allocations for each of the 8 batches.
			limit = records / 20
		}
		t.Run(codec.String(), func(t *testing.T) {
			p := &PartitionData{records: eventBatches(t, codec, records), aborted: []abortedTransaction{{1, 2}, {3, 4}}}
			var d Decoder
			drain(t, &d, p)
			drain(t, &d, p) // the memory has its size by now
			if allocs := testing.AllocsPerRun(20, func() { drain(t, &d, p) }); allocs > limit {
				t.Errorf("%v allocations for %d records, want at most %v", allocs, records, limit)
			}
		})
	}
}
