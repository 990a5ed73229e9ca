package state

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/weir-stream/weir/value"
)

// Exact windows are computed from the log of an entity: a header and a record for each event,
// ordered by time, and by arrival within one time. One log serves all features of an entity in a
// stream; a record holds only the columns that they need:
//
//	header   version (1 byte), greatest time that a cap has cut off (6 bytes)
//	record   length of the rest (varint), time (6 bytes), columns
//	column   tag (3 bytes: 21 bits of a hash of the column, 3 bits of its wire
//	         type), then nothing, a zigzag varint, 8 bytes, a varint length and as
//	         many bytes, or 16 bytes
//
// The tags of a record identify its columns. So definitions may add columns at any time, and processors with different
// definitions can write to one log. A null has no column. Times are big-endian milliseconds plus 2^47, so that times
// before 1970 can be stored.

const (
	logVersion    = 1
	logHeaderSize = 7
	logTimeBias   = int64(1) << 47
)

// LastEventTime is the greatest time of an event, in milliseconds: a time in a log has 48 bits, which end in the year
// 6429.
const LastEventTime = logTimeBias - 1

// LogHeader is the header of a new log, from which nothing was dropped.
var LogHeader = string(append([]byte{logVersion}, make([]byte, logHeaderSize-1)...))

// wire is how the value of a column is encoded.
type wire uint8

const (
	wireFlag   wire = iota // no value: the column is there or not
	wireVarint             // zigzag
	wireFixed              // 8 bytes, a float's bits
	wireBytes              // a varint length and as many bytes
	wirePair               // 16 bytes, two floats' bits
)

// wires maps types to encodings. Null is for a filter that selects the event.
var wires = [...]wire{
	value.Null: wireFlag, value.String: wireBytes, value.Int: wireVarint, value.Float: wireFixed, value.Decimal: wireVarint,
	value.Bool: wireVarint, value.Timestamp: wireVarint, value.Location: wirePair,
}

// Column is one column of a log: a field, or a filter, whose column is present if it selects the
// event.
type Column struct {
	tag   uint32
	Type  value.Type // Null for a filter
	Scale uint8
}

// NewColumn makes a column of a type. Its tag uses 21 bits of the hash. No two columns of one log may have the same
// tag.
func NewColumn(hash uint32, t value.Type, scale uint8) Column {
	return Column{tag: hash<<3&0xffffff | uint32(wires[t]), Type: t, Scale: scale}
}

// Tag distinguishes the column from the others of its log.
func (c Column) Tag() uint32 { return c.tag }

// AppendLogTime begins a record, without its length.
func AppendLogTime(dst []byte, time int64) []byte {
	t := uint64(time + logTimeBias)
	return append(dst, byte(t>>40), byte(t>>32), byte(t>>24), byte(t>>16), byte(t>>8), byte(t))
}

// AppendLogColumn appends a column of a record. It appends nothing for a null in a column with values.
func AppendLogColumn(dst []byte, c Column, v value.Value) []byte {
	if v.IsNull() && c.Type != value.Null {
		return dst
	}
	dst = append(dst, byte(c.tag>>16), byte(c.tag>>8), byte(c.tag))
	return appendWire(dst, wires[c.Type], v)
}

// AppendValue appends a non-null value in the encoding of ReadValue.
func AppendValue(dst []byte, v value.Value) []byte { return appendWire(dst, wires[v.Type], v) }

// ReadValue reads the only value in b, of a type and scale. Its string aliases b. It fails on bytes that AppendValue
// did not write.
func ReadValue(t value.Type, scale uint8, b []byte) (value.Value, error) {
	v := value.Value{Type: t, Scale: scale}
	rest, err := readColumn(b, wires[t], &v)
	if err == nil && len(rest) > 0 {
		err = errLog
	}
	return v, err
}

func appendWire(dst []byte, w wire, v value.Value) []byte {
	switch w {
	case wireVarint:
		dst = binary.AppendVarint(dst, v.Num)
	case wireFixed:
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Flt))
	case wireBytes:
		dst = binary.AppendUvarint(dst, uint64(len(v.Str)))
		dst = append(dst, v.Str...)
	case wirePair:
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Flt))
		dst = binary.BigEndian.AppendUint64(dst, math.Float64bits(v.Lon))
	}
	return dst
}

// AppendLogRecord appends a record with its length.
func AppendLogRecord(dst, record []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(record)))
	return append(dst, record...)
}

// Log is the log of an entity as stored; the zero Log is empty.
type Log []byte

// GrowingLog is the log of an entity that is held in memory. What is asked for each event is beside its bytes, most of
// which are in no cache when there are many entities.
type GrowingLog struct {
	Log
	// Start is the position of the first record: the number of bytes of records that preceded it. A record keeps its
	// position until it is dropped, or until a late one is inserted before it, which moves it to a later position.
	Start int64
	Cut   int64 // the time of Log.CutOff; MinTime for none
}

// errLog is the error for bytes that this code cannot have written.
var errLog = errors.New("the log is damaged")

// CutOff returns the greatest time of an event that a cap dropped; ok is false if none was.
func (l Log) CutOff() (time int64, ok bool) {
	if len(l) < logHeaderSize {
		return 0, false
	}
	time = LogTime(l[1:])
	return time, time != -logTimeBias
}

// LogTime returns the time, in milliseconds, at the start of a record without its length; see AppendLogTime.
func LogTime(b []byte) int64 {
	return int64(uint64(b[0])<<40|uint64(b[1])<<32|uint64(b[2])<<24|uint64(b[3])<<16|uint64(b[4])<<8|uint64(b[5])) - logTimeBias
}

// LogRecord is one event of a log.
type LogRecord struct {
	Time    int64
	columns []byte
}

// Record reads the record that starts `behind` bytes after the first one. size is its length, 0 after the last record.
func (l Log) Record(behind int) (r LogRecord, size int, err error) {
	if len(l) <= logHeaderSize+behind {
		return r, 0, nil
	}
	rest := l[logHeaderSize+behind:]
	length, n := binary.Uvarint(rest)
	if n <= 0 || length < 6 || length > uint64(len(rest)-n) {
		return r, 0, errLog
	}
	record := rest[n : n+int(length)]
	return LogRecord{Time: LogTime(record), columns: record[6:]}, n + int(length), nil
}

// Records calls visit with each record in stored order, until visit returns false.
func (l Log) Records(visit func(LogRecord) bool) error {
	if len(l) == 0 {
		return nil
	}
	if len(l) < logHeaderSize {
		return errLog
	}
	if l[0] != logVersion {
		return fmt.Errorf("the log is of version %d, and this program reads version %d", l[0], logVersion)
	}
	for at := 0; ; {
		r, size, err := l.Record(at)
		if err != nil || size == 0 || !visit(r) {
			return err
		}
		at += size
	}
}

// Column sets v to the value of a column, or to null if the record lacks it; ok reports whether the record has it.
// After an error v is null. A string aliases the log.
func (r *LogRecord) Column(c Column, v *value.Value) (ok bool, err error) {
	for rest := r.columns; len(rest) > 0; {
		*v = value.Value{}
		if len(rest) < 3 {
			return false, errLog
		}
		tag := uint32(rest[0])<<16 | uint32(rest[1])<<8 | uint32(rest[2])
		if rest, err = readColumn(rest[3:], wire(tag&7), v); err != nil {
			return false, err // v is still null
		}
		if tag == c.tag {
			v.Type, v.Scale = c.Type, c.Scale
			return true, nil
		}
	}
	*v = value.Value{}
	return false, nil
}

// Has reports whether the record has a column.
func (r *LogRecord) Has(c Column) (bool, error) {
	var v value.Value
	return r.Column(c, &v)
}

// readColumn reads the value of a column in one of the encodings into v, without its type.
func readColumn(b []byte, w wire, v *value.Value) (rest []byte, err error) {
	switch w {
	case wireFlag:
		return b, nil
	case wireVarint:
		num, n := binary.Varint(b)
		if n <= 0 {
			return nil, errLog
		}
		v.Num = num
		return b[n:], nil
	case wireFixed:
		if len(b) < 8 {
			return nil, errLog
		}
		v.Flt = math.Float64frombits(binary.BigEndian.Uint64(b))
		return b[8:], nil
	case wireBytes:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errLog
		}
		v.Str = b[n : n+int(size)]
		return b[n+int(size):], nil
	case wirePair:
		if len(b) < 16 {
			return nil, errLog
		}
		v.Flt = math.Float64frombits(binary.BigEndian.Uint64(b))
		v.Lon = math.Float64frombits(binary.BigEndian.Uint64(b[8:]))
		return b[16:], nil
	}
	return nil, errLog
}

// Tags lists the tags of the record's columns.
func (r *LogRecord) Tags() (tags []uint32, err error) {
	var unused value.Value
	for rest := r.columns; len(rest) > 0; {
		if len(rest) < 3 {
			return nil, errLog
		}
		tag := uint32(rest[0])<<16 | uint32(rest[1])<<8 | uint32(rest[2])
		if rest, err = readColumn(rest[3:], wire(tag&7), &unused); err != nil {
			return nil, err
		}
		tags = append(tags, tag)
	}
	return tags, nil
}
