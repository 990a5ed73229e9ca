package fetch

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// Record batch v2 as the Kafka protocol lays it out, big-endian:
//
//	 0 base offset        int64      27 base timestamp    int64
//	 8 length after here  int32      35 max timestamp     int64
//	12 leader epoch       int32      43 producer id       int64
//	16 magic              int8       51 producer epoch    int16
//	17 CRC-32C of 21..    uint32     53 base sequence     int32
//	21 attributes         int16      57 number of records int32
//	23 last offset delta  int32      61 records, perhaps compressed
const (
	batchPrefixSize = 12 // not included in the length
	batchHeaderSize = 61
	batchMagicAt    = 16
	batchCRCFrom    = 21
)

// Bits of a batch's attributes.
const (
	attrCodec         = 0x07
	attrLogAppendTime = 0x08
	attrTransactional = 0x10
	attrControl       = 0x20
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// recordBatch is the header of one record batch, and its encoded records.
type recordBatch struct {
	base, last    int64 // the offsets it covers, both inclusive, even if compaction removed their records
	size          int   // bytes, prefix included
	epoch         int32 // of the leader that wrote it
	crc           uint32
	attributes    int16
	baseTimestamp int64 // ms
	maxTimestamp  int64 // ms
	producerID    int64
	records       int32
	checked       []byte // what the CRC covers
	payload       []byte // the records, compressed as the attributes say
}

// parseRecordBatch reads the batch at the start of raw. whole is false if raw ends before the batch does: brokers cut a
// response at its size limit. It does not verify the checksum, nor the base offset, which the checksum does not cover.
func parseRecordBatch(raw []byte) (b recordBatch, whole bool, err error) {
	if len(raw) <= batchMagicAt {
		return b, false, nil
	}
	// The magic is at the same place in every version; the rest is laid out as above only in version 2.
	if magic := int8(raw[batchMagicAt]); magic != 2 {
		return b, false, fmt.Errorf("%w: magic %d, only magic 2 (written since Kafka 0.11) can be read", errMagic, magic)
	}
	b.base = int64(binary.BigEndian.Uint64(raw))
	length := int32(binary.BigEndian.Uint32(raw[8:]))
	if length < batchHeaderSize-batchPrefixSize {
		return b, false, fmt.Errorf("a batch length of %d is too short for a header", length)
	}
	b.size = batchPrefixSize + int(length)
	if len(raw) < b.size {
		return b, false, nil
	}
	raw = raw[:b.size]
	lastDelta := int32(binary.BigEndian.Uint32(raw[23:]))
	if lastDelta < 0 {
		return b, false, fmt.Errorf("a last offset delta of %d", lastDelta)
	}
	b.last = b.base + int64(lastDelta)
	b.epoch = int32(binary.BigEndian.Uint32(raw[12:]))
	b.crc = binary.BigEndian.Uint32(raw[17:])
	b.attributes = int16(binary.BigEndian.Uint16(raw[21:]))
	b.baseTimestamp = int64(binary.BigEndian.Uint64(raw[27:]))
	b.maxTimestamp = int64(binary.BigEndian.Uint64(raw[35:]))
	b.producerID = int64(binary.BigEndian.Uint64(raw[43:]))
	b.records = int32(binary.BigEndian.Uint32(raw[57:]))
	b.checked = raw[batchCRCFrom:]
	b.payload = raw[batchHeaderSize:]
	return b, true, nil
}

func (b *recordBatch) has(attr int16) bool { return b.attributes&attr != 0 }

// verify compares the batch with its checksum and then judges the fields that the checksum covers.
func (b *recordBatch) verify() error {
	if sum := crc32.Checksum(b.checked, castagnoli); sum != b.crc {
		return fmt.Errorf("%w: CRC-32C %08x, the batch says %08x", ErrChecksum, sum, b.crc)
	}
	if b.records < 0 {
		return fmt.Errorf("a batch of %d records", b.records)
	}
	return nil
}

// abortsTransaction reports whether a control batch holds an ABORT marker. The key of a control record is its version
// and its type, two int16; type 0 is ABORT, 1 is COMMIT.
func (b *recordBatch) abortsTransaction() (bool, error) {
	if b.records == 0 {
		return false, nil
	}
	var r Record
	if _, err := parseRecord(b.payload, &r); err != nil {
		return false, fmt.Errorf("control %w", err)
	}
	if len(r.Key) < 4 {
		return false, fmt.Errorf("a control record with a key of %d bytes", len(r.Key))
	}
	return binary.BigEndian.Uint16(r.Key[2:]) == 0, nil
}

// scan walks the headers of the batches of p and returns where that ends, and the leader epoch of its last whole batch,
// -1 where there is none. The error is about the first header that cannot be read, or not be where it is.
func scan(p *PartitionData) (at sequence, epoch int32, err error) {
	at, epoch = sequenceOf(p), -1
	for raw := p.records; ; {
		b, whole, err := parseRecordBatch(raw)
		if err != nil || !whole {
			return at, epoch, err
		}
		raw = raw[b.size:]
		if err := at.place(&b, raw); err != nil {
			return at, epoch, err
		}
		epoch = max(epoch, b.epoch)
	}
}
