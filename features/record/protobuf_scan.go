package record

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// protoScanner scans a message once by its compiled descriptor. It accepts what Protocol Buffers accept: fields come in
// any order, the last of a repeated scalar counts, repeated messages are merged, and unknown fields, and those not
// encoded as the schema says, are skipped.
type protoScanner struct {
	textMemory
	program *protoMessage
	data    []byte
	pos     int
	values  []Datum // by slot
	problem string
}

// Scan finds the values of the tree in a record.
func (s *protoScanner) Scan(rec *Record, values []Datum) error {
	return s.scan(s.program, rec.Value, values)
}

func (s *protoScanner) scan(program *protoMessage, data []byte, values []Datum) error {
	clear(values)
	s.data, s.pos, s.values, s.problem = data, 0, values, ""
	s.reset()
	if s.message(program, len(data), 0) {
		return nil
	}
	return &Poison{Reason: Malformed, Message: fmt.Sprintf("malformed Protobuf at byte %d of %d: %s", s.pos, len(data), s.problem)}
}

func (s *protoScanner) fail(problem string) bool {
	s.problem = problem
	return false
}

// fails records an error of protowire.
func (s *protoScanner) fails(n int) bool {
	if n == -1 { // its code for input that ends too early
		return s.fail("the record ends within a field")
	}
	return s.fail(strings.TrimLeft(strings.TrimPrefix(protowire.ParseError(n).Error(), "proto:"), " \u00a0")) // the prefix varies by build
}

// message reads the fields of a message up to its end, or to the tag that ends a group.
func (s *protoScanner) message(m *protoMessage, end int, group protowire.Number) bool {
	s.begin(m)
	for s.pos < end {
		number, wire, n := protowire.ConsumeTag(s.data[s.pos:end])
		if n < 0 {
			return s.fails(n)
		}
		if wire == protowire.EndGroupType && number == group {
			s.pos += n
			return true
		}
		s.pos += n
		if f := m.find(number, wire); f != nil {
			if !s.field(f, wire, end) {
				return false
			}
		} else if !s.skip(number, wire, end) {
			return false
		}
	}
	return group == 0 || s.fail("the record ends within a group")
}

// begin sets the type of a message before its fields are read, unless parts of it were already read.
func (s *protoScanner) begin(m *protoMessage) {
	if m.node != nil {
		s.values[m.node.slot] = Datum{Type: Object}
	}
	for i := range m.lacking {
		if d := &m.lacking[i]; s.values[d.slot].Type == Absent {
			s.values[d.slot] = d.datum
		}
	}
}

// find returns the field with a number, if this wire type is allowed for it; nil for one to skip.
func (m *protoMessage) find(number protowire.Number, wire protowire.Type) *protoField {
	for _, f := range m.fields {
		if f.number == number && (f.wire == wire || f.list && wire == protowire.BytesType) {
			return f
		}
	}
	return nil
}

func (s *protoScanner) skip(number protowire.Number, wire protowire.Type, end int) bool {
	n := protowire.ConsumeFieldValue(number, wire, s.data[s.pos:end])
	if n < 0 {
		return s.fails(n)
	}
	s.pos += n
	return true
}

// field reads the value of a field after its tag. Items of a list, single or packed, are skipped.
func (s *protoScanner) field(f *protoField, wire protowire.Type, end int) bool {
	for _, other := range f.others {
		clear(s.values[other.slot:other.until])
	}
	switch {
	case f.node == nil:
		return s.skip(f.number, wire, end)
	case f.list:
		s.values[f.node.slot] = Datum{Type: Array}
		return s.skip(f.number, wire, end)
	case wire == protowire.StartGroupType:
		return s.message(f.message, end, f.number)
	case wire == protowire.BytesType:
		return s.bytes(f, end)
	}
	return s.number(f, end)
}

// bytes reads a length-delimited field.
func (s *protoScanner) bytes(f *protoField, end int) bool {
	body, n := protowire.ConsumeBytes(s.data[s.pos:end])
	if n < 0 {
		return s.fails(n)
	}
	to := s.pos + n
	s.pos = to - len(body)
	switch {
	case f.entries != nil:
		return s.entry(f, to)
	case f.message != nil:
		return s.message(f.message, to, 0)
	case f.value != noProtoValue:
		return s.known(f, body, to)
	}
	s.pos = to
	s.values[f.node.slot] = Datum{Type: String, Text: body[:len(body):len(body)]}
	return true
}

// number reads a numeric field.
func (s *protoScanner) number(f *protoField, end int) bool {
	bits, ok := s.bits(f.wire, end)
	if ok {
		s.values[f.node.slot] = s.datum(f, bits)
	}
	return ok
}

// bits reads the raw bits of a number.
func (s *protoScanner) bits(wire protowire.Type, end int) (bits uint64, ok bool) {
	n := 0
	switch wire {
	case protowire.Fixed32Type:
		var short uint32
		short, n = protowire.ConsumeFixed32(s.data[s.pos:end])
		bits = uint64(short)
	case protowire.Fixed64Type:
		bits, n = protowire.ConsumeFixed64(s.data[s.pos:end])
	default:
		bits, n = protowire.ConsumeVarint(s.data[s.pos:end])
	}
	if n < 0 {
		return 0, s.fails(n)
	}
	s.pos += n
	return bits, true
}

// datum returns the value of a number in a field.
func (s *protoScanner) datum(f *protoField, bits uint64) Datum {
	switch f.kind {
	case protoreflect.BoolKind:
		if protowire.DecodeBool(bits) {
			return Datum{Type: True}
		}
		return Datum{Type: False}
	case protoreflect.EnumKind:
		d := f.symbol(int64(int32(bits)), s.text)
		if d.Type == Number {
			d.Text = s.hold(d.Text)
		}
		return d
	case protoreflect.FloatKind:
		return s.float(float64(math.Float32frombits(uint32(bits))), 32)
	case protoreflect.DoubleKind:
		return s.float(math.Float64frombits(bits), 64)
	}
	return Datum{Type: Number, Text: s.hold(appendProtoInt(s.text, f.kind, bits))}
}

func (s *protoScanner) float(f float64, bits int) Datum {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return Datum{Type: NotFinite}
	}
	return Datum{Type: Number, Text: s.hold(appendFloat(s.text, f, bits))}
}

// appendProtoInt appends the integer that a kind encodes in bits; excess high bits are ignored.
func appendProtoInt(dst []byte, kind protoreflect.Kind, bits uint64) []byte {
	switch kind {
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return strconv.AppendUint(dst, bits, 10)
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return strconv.AppendUint(dst, uint64(uint32(bits)), 10)
	case protoreflect.Int32Kind, protoreflect.Sfixed32Kind:
		return strconv.AppendInt(dst, int64(int32(bits)), 10)
	case protoreflect.Sint32Kind:
		return strconv.AppendInt(dst, protowire.DecodeZigZag(bits&math.MaxUint32), 10)
	case protoreflect.Sint64Kind:
		return strconv.AppendInt(dst, protowire.DecodeZigZag(bits), 10)
	}
	return strconv.AppendInt(dst, int64(bits), 10)
}

// The fields of a map's entry.
const (
	protoKey   protowire.Number = 1
	protoEntry protowire.Number = 2
)

// entry reads an entry of a map up to its end; the last value of a repeated key counts. Key and
// value may be in any order, and either may be omitted for its default, so the entry is read for
// the key first, and again for the value if the key is used.
func (s *protoScanner) entry(f *protoField, end int) bool {
	s.values[f.node.slot] = Datum{Type: Object}
	from, key := s.pos, protoKeyDefault(f.entries.key.kind)
	ok := s.entryFields(end, func(number protowire.Number, wire protowire.Type) (ok bool) {
		if number != protoKey || wire != f.entries.key.wire {
			return s.skip(number, wire, end)
		}
		key, ok = s.key(f.entries.key, end)
		return ok
	})
	if !ok {
		return false
	}
	for i, child := range f.node.children {
		if child.name == string(key) {
			s.pos = from
			return s.entryValue(f.entries.values[i], end)
		}
	}
	return true
}

// entryValue reads the value of an entry up to its end.
func (s *protoScanner) entryValue(f *protoField, end int) bool {
	clear(s.values[f.node.slot:f.node.until])
	switch {
	case f.message != nil:
		s.begin(f.message)
	case f.value == noProtoValue:
		s.values[f.node.slot] = f.zero()
	}
	return s.entryFields(end, func(number protowire.Number, wire protowire.Type) bool {
		if number == protoEntry && wire == f.wire {
			return s.field(f, wire, end)
		}
		return s.skip(number, wire, end)
	})
}

// entryFields calls read for each field of an entry, after its tag.
func (s *protoScanner) entryFields(end int, read func(protowire.Number, protowire.Type) bool) bool {
	for s.pos < end {
		number, wire, n := protowire.ConsumeTag(s.data[s.pos:end])
		if n < 0 {
			return s.fails(n)
		}
		if s.pos += n; !read(number, wire) {
			return false
		}
	}
	return true
}

// zero returns the value of an entry that has none.
func (f *protoField) zero() Datum {
	switch f.kind {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return Datum{Type: String}
	case protoreflect.BoolKind:
		return Datum{Type: False}
	case protoreflect.EnumKind:
		return f.symbol(0, nil)
	}
	return Datum{Type: Number, Text: protoZero}
}

var (
	protoZero  = []byte("0")
	protoFalse = []byte("false")
	protoTrue  = []byte("true")
)

func protoKeyDefault(kind protoreflect.Kind) []byte {
	switch kind {
	case protoreflect.StringKind:
		return nil
	case protoreflect.BoolKind:
		return protoFalse
	}
	return protoZero
}

// key reads a key of a map as the text that paths use for it.
func (s *protoScanner) key(f *protoField, end int) ([]byte, bool) {
	if f.wire == protowire.BytesType {
		key, n := protowire.ConsumeBytes(s.data[s.pos:end])
		if n < 0 {
			return nil, s.fails(n)
		}
		s.pos += n
		return key, true
	}
	bits, ok := s.bits(f.wire, end)
	switch {
	case !ok:
		return nil, false
	case f.kind == protoreflect.BoolKind && bits != 0:
		return protoTrue, true
	case f.kind == protoreflect.BoolKind:
		return protoFalse, true
	}
	return s.hold(appendProtoInt(s.text, f.kind, bits)), true
}
