package fetch

import (
	"bytes"
	"errors"
	"iter"
	"math"

	"github.com/segmentio/kafka-go"
)

// Record is one record of a partition. Its bytes belong to the decoder or to the PartitionData it reads, and stay valid
// until the decoder's next Reset or the PartitionData's Release.
type Record struct {
	Offset    int64
	Timestamp int64  // ms since 1970: the producer's, or the broker's where the topic uses LogAppendTime
	Key       []byte // nil where the record has none, which is not the same as empty
	Value     []byte // nil in a tombstone
	Headers   Headers
}

// Headers are the headers of a record, in the order in which they were written. A key may occur more than once.
type Headers struct {
	n   int
	raw []byte // already checked
}

// Len returns how many headers there are.
func (h Headers) Len() int { return h.n }

// All iterates over the headers. A value is nil where the producer gave none.
func (h Headers) All() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		raw := h.raw
		for range h.n {
			var key, value []byte
			key, value, raw, _ = parseHeader(raw)
			if !yield(string(key), value) {
				return
			}
		}
	}
}

// Copy copies the headers, which are only valid as long as the record.
func (h Headers) Copy() (headers []kafka.Header) {
	for key, value := range h.All() {
		headers = append(headers, kafka.Header{Key: key, Value: bytes.Clone(value)})
	}
	return headers
}

// Last returns the value of the last header with this key, the one that counts by Kafka's
// convention. It does not allocate.
func (h Headers) Last(key string) (value []byte, ok bool) {
	raw := h.raw
	for range h.n {
		var k, v []byte
		k, v, raw, _ = parseHeader(raw)
		if string(k) == key {
			value, ok = v, true
		}
	}
	return value, ok
}

var (
	errLength     = errors.New("record: the length does not fit its batch")
	errAttributes = errors.New("record: attributes, timestamp or offset are malformed")
	errKey        = errors.New("record: the key does not fit")
	errValue      = errors.New("record: the value does not fit")
	errHeaders    = errors.New("record: the headers do not fit")
	errExcess     = errors.New("record: bytes are left over after its headers")
)

// parseRecord reads the record at the start of raw: its key, value and headers, and in Offset and Timestamp the deltas
// to the batch's. It returns what follows the record.
func parseRecord(raw []byte, r *Record) (rest []byte, err error) {
	length, n := varint32(raw)
	if n == 0 || length < 0 || int(length) > len(raw)-n {
		return nil, errLength
	}
	rest = raw[n+int(length):]
	var ok bool
	b := raw[n : n+int(length) : n+int(length)]
	if len(b) == 0 {
		return nil, errAttributes
	}
	b = b[1:] // record attributes: none is in use
	delta, n := varint(b)
	if n == 0 {
		return nil, errAttributes
	}
	r.Timestamp = delta
	b = b[n:]
	offset, n := varint32(b)
	if n == 0 {
		return nil, errAttributes
	}
	r.Offset = int64(offset)
	b = b[n:]
	if r.Key, b, ok = parseBytes(b); !ok {
		return nil, errKey
	}
	if r.Value, b, ok = parseBytes(b); !ok {
		return nil, errValue
	}
	count, n := varint32(b)
	if n == 0 || count < 0 {
		return nil, errHeaders
	}
	b = b[n:]
	r.Headers = Headers{n: int(count), raw: b}
	for range count {
		if _, _, b, ok = parseHeader(b); !ok {
			return nil, errHeaders
		}
	}
	if len(b) != 0 {
		return nil, errExcess
	}
	return rest, nil
}

func parseHeader(raw []byte) (key, value, rest []byte, ok bool) {
	if key, rest, ok = parseBytes(raw); !ok || key == nil {
		return nil, nil, nil, false
	}
	value, rest, ok = parseBytes(rest)
	return key, value, rest, ok
}

// parseBytes reads a varint length and as many bytes; a length of -1 is nil.
func parseBytes(raw []byte) (b, rest []byte, ok bool) {
	length, n := varint32(raw)
	if n == 0 || length < -1 || int(length) > len(raw)-n {
		return nil, nil, false
	}
	if length < 0 {
		return nil, raw[n:], true
	}
	end := n + int(length)
	return raw[n:end:end], raw[end:], true
}

// varint32 reads a zigzag varint that must fit an int32. n is its size in bytes, 0 if there is none.
func varint32(b []byte) (v int32, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return int32(b[0]>>1) ^ -int32(b[0]&1), 1
	}
	long, n := varint(b)
	if long < math.MinInt32 || long > math.MaxInt32 {
		return 0, 0
	}
	return int32(long), n
}

// varint reads a zigzag varint. n is its size in bytes, 0 if b ends before it does or it does not fit an int64.
func varint(b []byte) (v int64, n int) {
	var u uint64
	for i, c := range b {
		if i == 9 && c > 1 {
			return 0, 0
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), i + 1
		}
	}
	return 0, 0
}
