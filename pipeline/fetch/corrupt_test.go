package fetch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"
)

func TestCorrupt(t *testing.T) {
	good := testBatch{base: 10, records: run("a", "b")}
	set := func(at int, value ...byte) func([]byte) {
		return func(raw []byte) { copy(raw[at:], value) }
	}
	edited := func(edit func([]byte)) testBatch { b := good; b.base = 12; b.edit = edit; return b }
	payload := func(bytes ...byte) testBatch {
		return testBatch{base: 12, lastDelta: 9, count: 1, payload: bytes}
	}
	// varints: 0x00=0 0x01=-1 0x02=1 0x04=2 …
	tests := []struct {
		name   string
		bad    testBatch
		offset int64 // 0: 12
		end    int64 // 0: -1
		reason string
		is     error
	}{
		{name: "checksum", bad: testBatch{base: 12, records: run("a"), afterCRC: set(batchHeaderSize+8, 'x')}, end: 13,
			reason: "checksum mismatch: CRC-32C 99780341, the batch says 62390f83", is: ErrChecksum},
		{name: "magic 0", bad: edited(set(batchMagicAt, 0)), is: errMagic,
			reason: "unsupported message format: magic 0, only magic 2 (written since Kafka 0.11) can be read"},
		{name: "magic 1", bad: edited(set(batchMagicAt, 1)), is: errMagic,
			reason: "unsupported message format: magic 1, only magic 2 (written since Kafka 0.11) can be read"},
		{name: "negative length", bad: edited(set(8, 0xff)), reason: "a batch length of -16777149 is too short for a header"},
		{name: "short length", bad: edited(set(8, 0, 0, 0, 48)), reason: "a batch length of 48 is too short for a header"},
		{name: "negative delta", bad: edited(set(23, 0x80)), reason: "a last offset delta of -2147483647"},
		{name: "negative count", bad: edited(set(57, 0xff, 0xff, 0xff, 0xff)), end: 14, reason: "a batch of -1 records"},
		{name: "too few records", bad: edited(set(57, 0, 0, 0, 3)), offset: 14, end: 14, reason: errLength.Error()},
		{name: "too many records", bad: edited(set(57, 0, 0, 0, 1)), offset: 13, end: 14,
			reason: "9 bytes are left over after the 1 records of a batch"},
		{name: "no records, but bytes", bad: edited(set(57, 0, 0, 0, 0)), end: 14,
			reason: "18 bytes are left over after the 0 records of a batch"},
		{name: "unknown codec", bad: edited(set(21, 0, 5)), end: 14, reason: "unknown compression codec 5"},
		{name: "no length", bad: testBatch{base: 12, count: 1}, end: 13, reason: errLength.Error()},
		{name: "negative record length", bad: payload(0x01), end: 22, reason: errLength.Error()},
		{name: "record longer than its batch", bad: payload(0x04, 0), end: 22, reason: errLength.Error()},
		{name: "record length without end", bad: payload(0x80, 0x80), end: 22, reason: errLength.Error()},
		{name: "record length over 32 bits", bad: payload(0x80, 0x80, 0x80, 0x80, 0x80, 0x01), end: 22, reason: errLength.Error()},
		{name: "empty record", bad: payload(0), end: 22, reason: errAttributes.Error()},
		{name: "no timestamp", bad: payload(2, 0), end: 22, reason: errAttributes.Error()},
		{name: "timestamp over 64 bits", bad: payload(24, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02, 0), end: 22,
			reason: errAttributes.Error()},
		{name: "no offset", bad: payload(4, 0, 0), end: 22, reason: errAttributes.Error()},
		{name: "no key", bad: payload(6, 0, 0, 0), end: 22, reason: errKey.Error()},
		{name: "key length of -2", bad: payload(8, 0, 0, 0, 3), end: 22, reason: errKey.Error()},
		{name: "key longer than its record", bad: payload(8, 0, 0, 0, 2), end: 22, reason: errKey.Error()},
		{name: "no value", bad: payload(8, 0, 0, 0, 1), end: 22, reason: errValue.Error()},
		{name: "value longer than its record", bad: payload(10, 0, 0, 0, 1, 2), end: 22, reason: errValue.Error()},
		{name: "no headers", bad: payload(10, 0, 0, 0, 1, 1), end: 22, reason: errHeaders.Error()},
		{name: "negative headers", bad: payload(12, 0, 0, 0, 1, 1, 1), end: 22, reason: errHeaders.Error()},
		{name: "missing header", bad: payload(12, 0, 0, 0, 1, 1, 2), end: 22, reason: errHeaders.Error()},
		{name: "header without key", bad: payload(16, 0, 0, 0, 1, 1, 2, 1, 1), end: 22, reason: errHeaders.Error()},
		{name: "header without value", bad: payload(14, 0, 0, 0, 1, 1, 2, 0), end: 22, reason: errHeaders.Error()},
		{name: "bytes after the headers", bad: payload(14, 0, 0, 0, 1, 1, 0, 0), end: 22, reason: errExcess.Error()},
		{name: "offset beyond its batch", bad: payload(12, 0, 0, 20, 1, 1, 0), end: 22, reason: errOrder.Error()},
		{name: "negative offset delta", bad: payload(12, 0, 0, 1, 1, 1, 0), end: 22, reason: errOrder.Error()},
		{name: "offset twice", bad: testBatch{base: 12, lastDelta: 9, records: []kmsg.Record{record(4, "a"), record(4, "b")}},
			offset: 17, end: 22, reason: errOrder.Error()},
		{name: "control record cut", bad: testBatch{base: 12, producer: 7, attributes: attrControl, count: 1, payload: []byte{2}},
			end: 13, reason: "control " + errLength.Error()},
		{name: "control key cut", bad: testBatch{base: 12, producer: 7, attributes: attrControl,
			records: []kmsg.Record{{Key: []byte{0, 0}}}}, end: 13, reason: "a control record with a key of 2 bytes"},
		{name: "gzip", bad: testBatch{base: 12, codec: compress.Gzip, count: 1, payload: []byte("rubbish that is not gzip")}, end: 13,
			reason: "gzip: gzip: invalid header"},
		{name: "lz4", bad: testBatch{base: 12, codec: compress.Lz4, count: 1, payload: []byte("rubbish")}, end: 13,
			reason: "lz4: lz4: bad magic number"},
		{name: "snappy", bad: testBatch{base: 12, codec: compress.Snappy, count: 1, payload: []byte("rubbish")}, end: 13,
			reason: "snappy: s2: corrupt input"},
		{name: "snappy header cut", bad: testBatch{base: 12, codec: compress.Snappy, count: 1, payload: xerialHeader}, end: 13,
			reason: "snappy: unexpected EOF"},
		{name: "snappy block cut", bad: testBatch{base: 12, codec: compress.Snappy, count: 1,
			payload: append(slices.Clone(xerialHeader), 0, 0, 0, 1, 0, 0, 0, 1, 0xff, 0, 0, 0)}, end: 13, reason: "snappy: unexpected EOF"},
		{name: "zstd", bad: testBatch{base: 12, codec: compress.Zstd, count: 1, payload: []byte("rubbish")}, end: 13,
			reason: "zstd: invalid input: magic number mismatch"},
		{name: "snappy too large", bad: testBatch{base: 12, codec: compress.Snappy, count: 1,
			payload: []byte{0xff, 0xff, 0xff, 0xff, 0x0f}}, end: 13, is: errTooLarge,
			reason: "the batch inflates to more than the limit of 100000 bytes"},
	}
	bomb := strings.Repeat("0", 100_000)
	for codec := compress.Gzip; codec <= compress.Zstd; codec++ {
		tests = append(tests, tests[0])
		test := &tests[len(tests)-1]
		test.name, test.is, test.reason = codec.String()+" bomb", errTooLarge, "the batch inflates to more than the limit of 100000 bytes"
		test.bad = testBatch{base: 12, codec: codec, records: run(bomb)}
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			offset, end := test.offset, test.end
			if offset == 0 {
				offset = 12
			}
			if end == 0 {
				end = -1
			}
			p := &PartitionData{
				Topic: "events", Partition: 4, Offset: 10, aborted: []abortedTransaction{{7, 0}},
				records: encode(t, good, test.bad, testBatch{base: 50, records: run("never reached")}),
			}
			d := Decoder{maxInflatedBytes: 100_000}
			_, next, err := decode(&d, p)
			var corrupt *CorruptError
			if !errors.As(err, &corrupt) {
				t.Fatalf("error %v, want a CorruptError", err)
			}
			if corrupt.Topic != "events" || corrupt.Partition != 4 || corrupt.Offset != offset || corrupt.EndOffset != end {
				t.Errorf("located at %s/%d [%d, %d), want events/4 [%d, %d)",
					corrupt.Topic, corrupt.Partition, corrupt.Offset, corrupt.EndOffset, offset, end)
			}
			if got := corrupt.Reason.Error(); got != test.reason {
				t.Errorf("reason %q, want %q", got, test.reason)
			}
			if test.is != nil && !errors.Is(err, test.is) {
				t.Errorf("the error %v does not wrap %v", err, test.is)
			}
			if want := fmt.Sprintf("fetch: cannot decode events/4 from offset %d: %s", offset, test.reason); err.Error() != want {
				t.Errorf("error %q, want %q", err, want)
			}
			if next != offset {
				t.Errorf("next offset %d, want %d", next, offset)
			}
			if _, again := d.Next(new(Record)); again != err {
				t.Errorf("a second call of Next returned the error %v, want the same", again)
			}
			if got, _, err := decode(&d, &PartitionData{Offset: 10, records: encode(t, good)}); err != nil || len(got) != 2 {
				t.Errorf("after Reset: records %v, error %v; want 2 records", got, err)
			}
		})
	}
}

// The header that says where a broken batch ends may itself be broken: the following batch and the high watermark also
// bound it.
func TestEndOfABrokenBatch(t *testing.T) {
	farEnd := func(raw []byte) { copy(raw[23:], []byte{0, 0, 1, 0xf4}) } // a last offset delta of 500
	damaged := encode(t, testBatch{base: 10, records: run("a", "b"), afterCRC: farEnd})
	second := encode(t, testBatch{base: 12, records: run("c")})
	for name, c := range map[string]struct {
		raw           []byte
		highWatermark int64
		want          int64
	}{
		"before another":             {slices.Concat(damaged, second), 13, 12},
		"the last":                   {damaged, 13, 13},
		"without a high watermark":   {damaged, 0, 511},
		"before one that is cut":     {slices.Concat(damaged, second[:30]), 13, 12},
		"beyond the high watermark?": {damaged, 9, -1},
	} {
		var d Decoder
		var r Record
		d.Reset(&PartitionData{Topic: "t", Offset: 10, highWatermark: c.highWatermark, records: c.raw})
		_, err := d.Next(&r)
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) || !errors.Is(err, ErrChecksum) || corrupt.Offset != 10 || corrupt.EndOffset != c.want {
			t.Errorf("%s: %+v, want the end %d", name, corrupt, c.want)
		}
	}
}
