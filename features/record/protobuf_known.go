package record

import (
	"fmt"
	"math"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
)

// known reads a message that is one value: a timestamp, a duration in seconds, or a decimal. It
// ends at to.
func (s *protoScanner) known(f *protoField, body []byte, to int) bool {
	var m protoKnown
	if n := m.read(body); n < 0 {
		return s.fails(n)
	}
	s.pos = to
	d := Datum{Type: Number}
	switch f.value {
	case protoTimestamp:
		d.Unit, d.Text = Milliseconds, s.hold(appendMillis(s.text, m.numbers[0], m.numbers[1]))
	case protoDuration:
		d.Text = s.hold(appendSeconds(s.text, m.numbers[0], m.numbers[1]))
	case protoDecimal:
		scale := int32(m.numbers[2])
		if scale < 0 || scale > maxProtoScale {
			return s.fail(fmt.Sprintf("a decimal of scale %d", scale))
		}
		d.Text = s.hold(appendDecimal(s.text, m.bytes, int(scale)))
	}
	s.values[f.node.slot] = d
	return true
}

// maxProtoScale bounds the fractional digits of a decimal.
const maxProtoScale = 255

// protoKnown are the fields of a message that is one value: numbers by field number, from 1, and
// the bytes of field 1.
type protoKnown struct {
	numbers [3]int64
	bytes   []byte
}

// read reads all fields; a negative result is an error of protowire.
func (m *protoKnown) read(body []byte) int {
	for len(body) > 0 {
		number, wire, n := protowire.ConsumeTag(body)
		if n < 0 {
			return n
		}
		body = body[n:]
		if n = protowire.ConsumeFieldValue(number, wire, body); n < 0 {
			return n
		}
		switch {
		case wire == protowire.VarintType && int(number) <= len(m.numbers):
			bits, _ := protowire.ConsumeVarint(body)
			m.numbers[number-1] = int64(bits)
		case wire == protowire.BytesType && number == 1:
			m.bytes, _ = protowire.ConsumeBytes(body)
		}
		body = body[n:]
	}
	return 0
}

const nanosPerMilli = 1_000_000

// appendMillis appends a timestamp in milliseconds, rounding finer ones down.
func appendMillis(dst []byte, seconds, nanos int64) []byte {
	if seconds > math.MaxInt64/2000 || seconds < math.MinInt64/2000 {
		return append(strconv.AppendInt(dst, seconds, 10), "000"...) // out of range of all years
	}
	return strconv.AppendInt(dst, seconds*1000+int64(int32(nanos))/nanosPerMilli, 10)
}

// appendSeconds appends a duration in seconds, exactly.
func appendSeconds(dst []byte, seconds, nanos int64) []byte {
	nanos = int64(int32(nanos))
	if seconds < 0 || nanos < 0 {
		dst = append(dst, '-')
	}
	whole := uint64(seconds)
	if seconds < 0 {
		whole = -whole
	}
	dst = strconv.AppendUint(dst, whole, 10)
	if nanos == 0 {
		return dst
	}
	from := len(dst)
	dst = strconv.AppendInt(dst, 1_000_000_000+max(nanos, -nanos), 10)
	dst[from] = '.'
	return dst
}
