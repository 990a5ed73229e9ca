package thin

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// The types of objects that Weir sends and reads.
const (
	typeLong      = 4
	typeString    = 9
	typeUUID      = 10
	typeByteArray = 12
	typeTimestamp = 33
	typeNull      = 101
)

// UUID is a java.util.UUID.
type UUID struct{ High, Low uint64 }

func (u UUID) String() string {
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", u.High>>32, u.High>>16&0xffff, u.High&0xffff, u.Low>>48, u.Low&(1<<48-1))
}

// encoder writes a message, little-endian.
type encoder struct{ bytes []byte }

func (e *encoder) byte(b byte) { e.bytes = append(e.bytes, b) }

func (e *encoder) bool(b bool) {
	if b {
		e.byte(1)
	} else {
		e.byte(0)
	}
}

func (e *encoder) short(n int16) {
	e.bytes = binary.LittleEndian.AppendUint16(e.bytes, uint16(n))
}
func (e *encoder) int(n int32)  { e.bytes = binary.LittleEndian.AppendUint32(e.bytes, uint32(n)) }
func (e *encoder) long(n int64) { e.bytes = binary.LittleEndian.AppendUint64(e.bytes, uint64(n)) }

func (e *encoder) string(s string) {
	e.byte(typeString)
	e.int(int32(len(s)))
	e.bytes = append(e.bytes, s...)
}

func (e *encoder) byteArray(b []byte) {
	e.byte(typeByteArray)
	e.int(int32(len(b)))
	e.bytes = append(e.bytes, b...)
}

func (e *encoder) null() { e.byte(typeNull) }

func (e *encoder) uuid(u UUID) {
	e.byte(typeUUID)
	e.long(int64(u.High))
	e.long(int64(u.Low))
}

var errShort = errors.New("the message is too short")

// decoder reads a message. After an error it returns zeros.
type decoder struct {
	bytes []byte
	err   error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
	d.bytes = nil
}

func (d *decoder) next(n int) []byte {
	if n < 0 || n > len(d.bytes) {
		d.fail(errShort)
		return nil
	}
	next := d.bytes[:n:n]
	d.bytes = d.bytes[n:]
	return next
}

func (d *decoder) byte() byte {
	if b := d.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (d *decoder) bool() bool { return d.byte() != 0 }

func (d *decoder) short() int16 {
	if b := d.next(2); b != nil {
		return int16(binary.LittleEndian.Uint16(b))
	}
	return 0
}

func (d *decoder) int() int32 {
	if b := d.next(4); b != nil {
		return int32(binary.LittleEndian.Uint32(b))
	}
	return 0
}

func (d *decoder) long() int64 {
	if b := d.next(8); b != nil {
		return int64(binary.LittleEndian.Uint64(b))
	}
	return 0
}

// count returns the number of things that follow, of at least that many bytes each.
func (d *decoder) count(least int) int {
	n := int(d.int())
	if n < 0 || n > len(d.bytes)/least {
		d.fail(errShort)
		return 0
	}
	return n
}

// typed reports whether an object of a type follows: not null.
func (d *decoder) typed(want byte) bool {
	switch got := d.byte(); {
	case got == want && d.err == nil:
		return true
	case got != typeNull:
		d.fail(fmt.Errorf("an object has type %d, want %d", got, want))
	}
	return false
}

// string returns a string, "" for null.
func (d *decoder) string() string {
	if !d.typed(typeString) {
		return ""
	}
	return string(d.next(int(d.int())))
}

// byteArray returns an array of bytes, nil for null. It aliases the message.
func (d *decoder) byteArray() []byte {
	if !d.typed(typeByteArray) {
		return nil
	}
	return d.next(int(d.int()))
}

func (d *decoder) uuid() UUID {
	if !d.typed(typeUUID) {
		return UUID{}
	}
	return UUID{uint64(d.long()), uint64(d.long())}
}

// timestamp returns a java.sql.Timestamp in ms since 1970.
func (d *decoder) timestamp() int64 {
	if !d.typed(typeTimestamp) {
		return 0
	}
	ms := d.long()
	d.int() // ns within the ms
	return ms
}
