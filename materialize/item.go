package materialize

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Events and rows are sorted in decoded form, with typed values, so that no text is parsed twice.

var errCut = errors.New("what was sorted on disk is cut short")

// item decodes an event or a row. After an error it returns empty values.
type item struct {
	rest []byte
	err  error
}

func (i *item) uint() uint64 {
	if len(i.rest) > 0 && i.rest[0] < 0x80 { // of one byte, as most are
		n := i.rest[0]
		i.rest = i.rest[1:]
		return uint64(n)
	}
	n, size := binary.Uvarint(i.rest)
	if size <= 0 {
		i.fail()
		return 0
	}
	i.rest = i.rest[size:]
	return n
}

// int is the inverse of binary.AppendVarint.
func (i *item) int() int64 {
	n := i.uint()
	return int64(n>>1) ^ -int64(n&1)
}

func (i *item) bytes(n uint64) []byte {
	if n > uint64(len(i.rest)) {
		i.fail()
		return nil
	}
	b := i.rest[:n:n]
	i.rest = i.rest[n:]
	return b
}

func (i *item) fail() { i.rest, i.err = nil, errCut }

// appendText appends a text after its length; nil means none.
func appendText(dst, text []byte) []byte {
	if text == nil {
		return append(dst, 0)
	}
	return append(binary.AppendUvarint(dst, uint64(len(text))+1), text...)
}

// text reads what appendText has written, without a copy.
func (i *item) text() []byte {
	n := i.uint()
	if n == 0 {
		return nil
	}
	return i.bytes(n - 1)
}

// appendMutationText appends the text of a mutation; nil means none, which is not the same as one that is empty.
func appendMutationText(dst []byte, t *state.Text) []byte {
	if t == nil {
		return append(dst, 0)
	}
	dst = append(binary.AppendUvarint(dst, uint64(len(t.Member))+1), t.Member...)
	return append(binary.AppendUvarint(dst, uint64(len(t.Key))), t.Key...)
}

// mutationText reads what appendMutationText has written, without a copy, and reports whether there is a text.
func (i *item) mutationText(t *state.Text) bool {
	n := i.uint()
	if n == 0 {
		return false
	}
	t.Member, t.Key = i.bytes(n-1), i.bytes(i.uint())
	return true
}

// appendTyped appends a value with its type.
func appendTyped(dst []byte, v *value.Value) []byte {
	dst = append(dst, byte(v.Type))
	switch v.Type {
	case value.Null:
		return dst
	case value.String:
		dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
		return append(dst, v.Str...)
	case value.Timestamp:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.Num))
	case value.Float:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Flt))
	case value.Location:
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Flt))
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.Lon))
	case value.Decimal:
		return binary.AppendVarint(append(dst, v.Scale), v.Num)
	default:
		return binary.AppendVarint(dst, v.Num)
	}
}

// typed reads what appendTyped has written. A string aliases it.
func (i *item) typed(v *value.Value) {
	*v = value.Value{}
	if len(i.rest) == 0 {
		i.fail()
		return
	}
	v.Type, i.rest = value.Type(i.rest[0]), i.rest[1:]
	switch v.Type {
	case value.Null:
	case value.String:
		if n := i.uint(); i.err == nil {
			v.Str = i.bytes(n)
		}
	case value.Timestamp:
		v.Num = int64(i.fixed())
	case value.Float:
		v.Flt = i.float()
	case value.Location:
		v.Flt, v.Lon = i.float(), i.float()
	case value.Decimal:
		if scale := i.bytes(1); scale != nil {
			v.Scale, v.Num = scale[0], i.int()
		}
	default:
		v.Num = i.int()
	}
}

// skip passes over what appendTyped has written.
func (i *item) skip() {
	if len(i.rest) == 0 {
		i.fail()
		return
	}
	typ := value.Type(i.rest[0])
	i.rest = i.rest[1:]
	switch typ {
	case value.Null:
	case value.String:
		i.bytes(i.uint())
	case value.Timestamp, value.Float:
		i.bytes(8)
	case value.Location:
		i.bytes(16)
	case value.Decimal:
		i.bytes(1)
		i.uint()
	default:
		i.uint()
	}
}

// fixed reads 8 bytes.
func (i *item) fixed() uint64 {
	b := i.bytes(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

func (i *item) float() float64 { return math.Float64frombits(i.fixed()) }

// appendEvent appends an event without its stream, with the values of its first fields.
func appendEvent(dst []byte, e *record.Event, fields int) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(e.Time))
	dst = appendText(dst, e.ID)
	for i := range e.Values[:fields] {
		dst = appendTyped(dst, &e.Values[i])
	}
	return dst
}

// event reads an event of its stream, which is set, into its values, except those that are not wanted; nil wants all.
func (i *item) event(e *record.Event, wanted []bool) {
	e.Time, e.ID = int64(i.fixed()), i.text()
	for n := range e.Values {
		if wanted == nil || wanted[n] {
			i.typed(&e.Values[n])
		} else {
			i.skip()
		}
	}
}
