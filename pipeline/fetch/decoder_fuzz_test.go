package fetch

import (
	"testing"

	"github.com/segmentio/kafka-go/compress"
)

// FuzzDecoder feeds arbitrary bytes to the decoder: it must not panic, grow beyond its limit or go backwards, and must
// agree with scan on where the data ends. With fix, the checksums are corrected first, so that the damage reaches what
// they protect.
func FuzzDecoder(f *testing.F) {
	for codec := compress.None; codec <= compress.Zstd; codec++ {
		f.Add(encode(f, testBatch{base: 5, codec: codec, records: run("a", "b")}, control(7, 1, markAbort),
			testBatch{base: 8, lastDelta: 4}), int64(6), int64(1), int64(5), true)
	}
	f.Add(encode(f, testBatch{attributes: attrTransactional, producer: 1, records: run("a")}), int64(0), int64(1), int64(0), false)
	f.Fuzz(func(t *testing.T, raw []byte, from, producer, first int64, fix bool) {
		if fix {
			for rest := raw; ; {
				b, whole, err := parseRecordBatch(rest)
				if err != nil || !whole {
					break
				}
				fixCRC(rest[:b.size])
				rest = rest[b.size:]
			}
		}
		const limit = 1 << 16
		d := Decoder{maxInflatedBytes: limit}
		p := &PartitionData{records: raw, Offset: from, aborted: []abortedTransaction{{producer, first}}}
		d.Reset(p)
		next := from
		for {
			var r Record
			ok, err := d.Next(&r)
			if d.NextOffset() < next {
				t.Fatalf("the position went back from %d to %d", next, d.NextOffset())
			}
			if ok && (r.Offset < next || d.NextOffset() != r.Offset+1) {
				t.Fatalf("the record at offset %d moved the position from %d to %d", r.Offset, next, d.NextOffset())
			}
			n := 0
			for range r.Headers.All() {
				n++
			}
			if n != r.Headers.Len() {
				t.Fatalf("iterated over %d headers, want %d", n, r.Headers.Len())
			}
			next = d.NextOffset()
			if err == nil && !ok {
				if end, _, err := scan(p); end.next != next || err != nil {
					t.Fatalf("decoded up to %d, but scanned up to %d; error %v", next, end.next, err)
				}
			}
			if !ok {
				break
			}
		}
		// zstd's decoder allocates some memory beyond its limit.
		if got := cap(d.inflater.arena); got > 2*limit+1024 {
			t.Fatalf("the arena has %d bytes, with a limit of %d", got, limit)
		}
	})
}
