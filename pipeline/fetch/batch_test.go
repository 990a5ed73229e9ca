package fetch

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/segmentio/kafka-go/compress"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// testBatch describes a record batch. Its zero value is an empty one at offset 0.
type testBatch struct {
	base       int64
	lastDelta  int32 // 0: that of the last record
	attributes int16 // without the codec
	codec      compress.Compression
	timestamp  int64
	maxTime    int64
	producer   int64
	records    []kmsg.Record
	payload    []byte // in place of the records, as it is
	count      int32  // in place of the number of records
	edit       func(raw []byte)
	afterCRC   func(raw []byte)
}

// record is one with an offset delta and a value.
func record(delta int32, value string) kmsg.Record {
	return kmsg.Record{OffsetDelta: delta, Key: []byte("k"), Value: []byte(value)}
}

// run is records with the deltas from..to-1 and as many values.
func run(values ...string) []kmsg.Record {
	var records []kmsg.Record
	for i, v := range values {
		records = append(records, record(int32(i), v))
	}
	return records
}

const (
	markAbort  = 0
	markCommit = 1
)

// control is the batch that ends a producer's transaction.
func control(base, producer int64, mark byte) testBatch {
	return testBatch{
		base: base, producer: producer, attributes: attrTransactional | attrControl,
		records: []kmsg.Record{{Key: []byte{0, 0, 0, mark}, Value: []byte{0, 0, 0, 0, 0, 0}}},
	}
}

// encodeRecords serializes records with the lengths that they have.
func encodeRecords(records []kmsg.Record) []byte {
	var out []byte
	for _, r := range records {
		r.Length = 0
		body := r.AppendTo(nil)[1:] // less the length of 0
		out = binary.AppendVarint(out, int64(len(body)))
		out = append(out, body...)
	}
	return out
}

func deflate(t testing.TB, codec compress.Codec, data []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := codec.NewWriter(&out)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (b testBatch) encode(t testing.TB) []byte {
	t.Helper()
	payload, count, lastDelta := b.payload, b.count, b.lastDelta
	if payload == nil {
		payload = encodeRecords(b.records)
		if b.codec != compress.None && len(b.records) > 0 {
			payload = deflate(t, b.codec.Codec(), payload)
		}
	}
	if count == 0 {
		count = int32(len(b.records))
	}
	if n := len(b.records); lastDelta == 0 && n > 0 {
		lastDelta = b.records[n-1].OffsetDelta
	}
	raw := (&kmsg.RecordBatch{
		FirstOffset:     b.base,
		Length:          int32(batchHeaderSize - batchPrefixSize + len(payload)),
		Magic:           2,
		Attributes:      b.attributes | int16(b.codec),
		LastOffsetDelta: lastDelta,
		FirstTimestamp:  b.timestamp,
		MaxTimestamp:    b.maxTime,
		ProducerID:      b.producer,
		NumRecords:      count,
		Records:         payload,
	}).AppendTo(nil)
	if b.edit != nil {
		b.edit(raw)
	}
	fixCRC(raw)
	if b.afterCRC != nil {
		b.afterCRC(raw)
	}
	return raw
}

func fixCRC(raw []byte) {
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[batchCRCFrom:], castagnoli))
}

// encode puts batches one after the other.
func encode(t testing.TB, batches ...testBatch) []byte {
	t.Helper()
	var raw []byte
	for _, b := range batches {
		raw = append(raw, b.encode(t)...)
	}
	return raw
}
