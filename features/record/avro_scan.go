package record

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// avroScanner scans a record once by the type that its schema was compiled to.
type avroScanner struct {
	program *avroType
	data    []byte
	pos     int
	depth   int
	values  []Datum // by slot
	problem string
	textMemory
}

const uuidBytes = 16

// Scan finds the values of the tree in a record.
func (s *avroScanner) Scan(rec *Record, values []Datum) error {
	return s.scan(s.program, rec.Value, values)
}

func (s *avroScanner) scan(program *avroType, data []byte, values []Datum) error {
	if ok := s.readAt(program, data, 0, values); ok && s.pos == len(data) {
		return nil
	} else if ok {
		s.problem = "the record continues after its last field"
	}
	return s.malformed()
}

// readAt reads the record that begins at a position of the data.
func (s *avroScanner) readAt(program *avroType, data []byte, pos int, values []Datum) bool {
	clear(values)
	s.data, s.pos, s.depth, s.values, s.problem = data, pos, 0, values, ""
	s.reset()
	return s.read(program)
}

func (s *avroScanner) malformed() *Poison {
	return &Poison{Reason: Malformed, Message: fmt.Sprintf("malformed Avro at byte %d of %d: %s", s.pos, len(s.data), s.problem)}
}

func (s *avroScanner) fail(problem string) bool {
	s.problem = problem
	return false
}

// long reads an integer of Avro's variable length.
func (s *avroScanner) long() (int64, bool) {
	if s.pos < len(s.data) && s.data[s.pos] < 0x80 {
		u := uint64(s.data[s.pos])
		s.pos++
		return int64(u>>1) ^ -int64(u&1), true
	}
	u, n := binary.Uvarint(s.data[s.pos:])
	if n == 0 {
		return 0, s.fail("the record ends within a number")
	}
	if n < 0 {
		return 0, s.fail("a number of more than 64 bits")
	}
	s.pos += n
	return int64(u>>1) ^ -int64(u&1), true
}

// take takes n bytes of the record.
func (s *avroScanner) take(n int64) ([]byte, bool) {
	if n < 0 || n > int64(len(s.data)-s.pos) {
		return nil, s.fail(fmt.Sprintf("a value of %d bytes, with %d left", n, len(s.data)-s.pos))
	}
	from := s.pos
	s.pos += int(n)
	return s.data[from:s.pos:s.pos], true
}

func (s *avroScanner) bytes() ([]byte, bool) {
	n, ok := s.long()
	if !ok {
		return nil, false
	}
	return s.take(n)
}

// put stores a value if it is used.
func (s *avroScanner) put(t *avroType, typ DatumType, text []byte) bool {
	if t.node != nil {
		s.values[t.node.slot] = Datum{Type: typ, Unit: t.unit, Text: text}
	}
	return true
}

// read reads a value of a type.
func (s *avroScanner) read(t *avroType) bool {
	switch t.encoding {
	case avroNull:
		return s.put(t, Null, nil)
	case avroInt, avroLong:
		n, ok := s.long()
		if !ok {
			return false
		}
		if t.encoding == avroInt && int64(int32(n)) != n {
			return s.fail("an int of more than 32 bits")
		}
		if t.node == nil {
			return true
		}
		return s.put(t, Number, s.hold(strconv.AppendInt(s.text, n, 10)))
	case avroBytes:
		text, ok := s.bytes()
		return ok && s.put(t, String, text)
	case avroUnion:
		return s.union(t)
	case avroRecord:
		return s.record(t)
	case avroArray, avroMap:
		return s.blocks(t)
	default:
		return s.scalar(t)
	}
}

// scalar reads a value without parts, of the less frequent types.
func (s *avroScanner) scalar(t *avroType) bool {
	switch t.encoding {
	case avroBool:
		return s.truth(t)
	case avroFloat, avroDouble:
		return s.float(t)
	case avroEnum:
		i, ok := s.long()
		if !ok {
			return false
		}
		if i < 0 || i >= int64(len(t.symbols)) {
			return s.fail(fmt.Sprintf("symbol %d of an enum of %d", i, len(t.symbols)))
		}
		return s.put(t, String, t.symbols[i])
	case avroDecimal:
		digits, ok := s.bytes()
		return ok && s.decimal(t, digits)
	}
	content, ok := s.take(int64(t.size))
	switch {
	case !ok || t.node == nil:
		return ok
	case t.encoding == avroFixedDecimal:
		return s.decimal(t, content)
	case t.uuid:
		return s.put(t, String, s.hold(appendUUID(s.text, content)))
	}
	return s.put(t, String, content)
}

func (s *avroScanner) truth(t *avroType) bool {
	b, ok := s.take(1)
	switch {
	case !ok:
		return false
	case b[0] > 1:
		return s.fail(fmt.Sprintf("a boolean that is %d", b[0]))
	case b[0] == 1:
		return s.put(t, True, nil)
	}
	return s.put(t, False, nil)
}

func (s *avroScanner) float(t *avroType) bool {
	size := 8
	if t.encoding == avroFloat {
		size = 4
	}
	b, ok := s.take(int64(size))
	if !ok || t.node == nil {
		return ok
	}
	f := 0.0
	if size == 4 {
		f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	} else {
		f = math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return s.put(t, NotFinite, nil)
	}
	return s.put(t, Number, s.hold(appendFloat(s.text, f, 8*size)))
}

// appendFloat appends a float as encoding/json writes it: the shortest digits that parse to the
// same float of that many bits.
func appendFloat(dst []byte, f float64, bits int) []byte {
	format := byte('f')
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, bits)
}

// decimal stores a decimal.
func (s *avroScanner) decimal(t *avroType, digits []byte) bool {
	if t.node == nil {
		return true
	}
	if len(digits) > maxDecimal {
		return s.fail(fmt.Sprintf("a decimal of %d bytes", len(digits)))
	}
	return s.put(t, Number, s.hold(appendDecimal(s.text, digits, t.scale)))
}

// appendDecimal appends a decimal whose digits are a big-endian integer in two's complement.
func appendDecimal(dst, digits []byte, scale int) []byte {
	from := len(dst)
	if digits = minimal(digits); len(digits) > 8 {
		dst = appendGreat(dst, digits)
	} else {
		dst = strconv.AppendInt(dst, integer(digits), 10)
	}
	return pointed(dst, from, scale)
}

// appendGreat appends a big-endian integer in two's complement, of at most maxDecimal bytes.
func appendGreat(dst, digits []byte) []byte {
	var buffer [maxDecimal]byte
	n := buffer[:copy(buffer[:], digits)]
	if n[0] >= 0x80 {
		dst = append(dst, '-')
		for carry, i := true, len(n)-1; i >= 0; i-- { // two's complement
			n[i] = ^n[i]
			if carry {
				n[i]++
				carry = n[i] == 0
			}
		}
	}
	from := len(dst)
	for len(n) > 0 {
		const group = 1_000_000_000
		rest := uint64(0)
		for i, b := range n {
			rest = rest<<8 | uint64(b)
			n[i], rest = byte(rest/group), rest%group
		}
		n = bytes.TrimLeft(n, "\x00")
		for range 9 {
			if len(n) == 0 && rest == 0 {
				break
			}
			dst = append(dst, byte('0'+rest%10))
			rest /= 10
		}
	}
	slices.Reverse(dst[from:])
	return dst
}

// minimal returns a big-endian integer in two's complement without bytes beyond eight that only repeat its sign.
func minimal(digits []byte) []byte {
	for len(digits) > 8 && (digits[0] == 0 && digits[1] < 0x80 || digits[0] == 0xff && digits[1] >= 0x80) {
		digits = digits[1:]
	}
	return digits
}

// integer returns a big-endian integer in two's complement, of at most eight bytes.
func integer(digits []byte) (n int64) {
	if len(digits) > 0 && digits[0] >= 0x80 {
		n = -1
	}
	for _, b := range digits {
		n = n<<8 | int64(b)
	}
	return n
}

// pointed inserts a decimal point before the last scale digits of the integer that begins at from.
func pointed(text []byte, from, scale int) []byte {
	if scale == 0 {
		return text
	}
	if text[from] == '-' {
		from++
	}
	for len(text)-from <= scale {
		text = slices.Insert(text, from, '0')
	}
	return slices.Insert(text, len(text)-scale, '.')
}

func appendUUID(dst, b []byte) []byte {
	for i, until := range [...]int{4, 6, 8, 10, 16} {
		from := [...]int{0, 4, 6, 8, 10}[i]
		if i > 0 {
			dst = append(dst, '-')
		}
		dst = hex.AppendEncode(dst, b[from:until])
	}
	return dst
}

func (s *avroScanner) union(t *avroType) bool {
	i, ok := s.long()
	if !ok {
		return false
	}
	if i < 0 || i >= int64(len(t.parts)) {
		return s.fail(fmt.Sprintf("branch %d of a union of %d", i, len(t.parts)))
	}
	return s.read(t.parts[i])
}

func (s *avroScanner) record(t *avroType) bool {
	if !s.enter(t, Object) {
		return false
	}
	for _, field := range t.parts {
		if !s.read(field) {
			return false
		}
	}
	s.depth--
	for _, d := range t.lacking {
		s.values[d.slot] = d.datum
	}
	return true
}

// enter begins a value with others inside.
func (s *avroScanner) enter(t *avroType, typ DatumType) bool {
	if s.depth++; s.depth > maxDepth {
		return s.fail("values are nested too deeply")
	}
	return s.put(t, typ, nil)
}

// blocks reads the blocks of an array or a map.
func (s *avroScanner) blocks(t *avroType) bool {
	typ := Object
	if t.encoding == avroArray {
		typ = Array
	}
	if !s.enter(t, typ) {
		return false
	}
	for {
		count, ok := s.long()
		if !ok {
			return false
		}
		if count == 0 {
			s.depth--
			return true
		}
		end := -1
		if count < 0 { // the block's length follows, for skipping it
			size, ok := s.long()
			switch {
			case !ok:
				return false
			case count == math.MinInt64 || size < 0 || size > int64(len(s.data)-s.pos):
				return s.fail(fmt.Sprintf("a block of %d items in %d bytes, with %d left", -count, size, len(s.data)-s.pos))
			}
			count, end = -count, s.pos+int(size)
		}
		if !s.items(t, count) {
			return false
		}
		if end >= 0 && s.pos != end {
			return s.fail("a block whose length is wrong")
		}
	}
}

// items reads some items of an array or a map.
func (s *avroScanner) items(t *avroType, count int64) bool {
	item := t.parts[len(t.parts)-1]
	if t.encoding == avroArray && item.empty {
		return true // whatever their number
	}
	for ; count > 0; count-- {
		if t.encoding == avroMap && !s.entry(t) || t.encoding == avroArray && !s.read(item) {
			return false
		}
	}
	return true
}

// entry reads a key of a map and its value; the last value of a repeated key counts.
func (s *avroScanner) entry(t *avroType) bool {
	key, ok := s.bytes()
	if !ok {
		return false
	}
	value := t.parts[len(t.parts)-1]
	if t.node != nil {
		for i, child := range t.node.children {
			if child.name == string(key) {
				clear(s.values[child.slot:child.until])
				value = t.parts[i]
			}
		}
	}
	return s.read(value)
}
