package source

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"

	"github.com/weir-stream/weir/value"
)

// cellOf makes a cell from a value that is not null. It appends the cell's text to the buffer; the
// cell aliases that.
type cellOf = func([]byte, parquet.Value) (Cell, []byte)

// textCell makes cells of a type. appendText appends their text.
func textCell(typ CellType, appendText func([]byte, parquet.Value) []byte) cellOf {
	return func(text []byte, v parquet.Value) (Cell, []byte) {
		start := len(text)
		text = appendText(text, v)
		return Cell{Type: typ, Text: text[start:len(text):len(text)]}, text
	}
}

// floatCell makes cells from the floats of some bits that a function returns. NaN is null, since pandas writes nulls
// that way, and so is infinity.
func floatCell(bits int, of func(parquet.Value) float64) cellOf {
	return func(text []byte, v parquet.Value) (Cell, []byte) {
		start := len(text)
		grown := appendFloat(text, of(v), bits)
		if grown == nil {
			return Cell{}, text
		}
		return Cell{Type: Number, Text: grown[start:len(grown):len(grown)]}, grown
	}
}

// timeCell makes cells from the times that a function returns, which may be local.
func timeCell(local bool, of func(parquet.Value) time.Time) cellOf {
	return func(text []byte, v parquet.Value) (Cell, []byte) {
		start, t := len(text), of(v).UTC()
		text = t.AppendFormat(text, time.RFC3339Nano)
		return Cell{Type: Time, Text: text[start:len(text):len(text)], Ms: t.UnixMilli(), Local: local}, text
	}
}

// parquetCell makes cells from the values of a type.
func parquetCell(t parquet.Type) (cellOf, error) {
	if logical := t.LogicalType(); logical != nil {
		if cell := logicalCell(t.Kind(), logical.Value); cell != nil {
			return cell, nil
		}
	}
	switch t.Kind() {
	case parquet.Boolean:
		return textCell(Bool, func(dst []byte, v parquet.Value) []byte { return strconv.AppendBool(dst, v.Boolean()) }), nil
	case parquet.Int32:
		return textCell(Number, func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, int64(v.Int32()), 10) }), nil
	case parquet.Int64:
		return textCell(Number, func(dst []byte, v parquet.Value) []byte { return strconv.AppendInt(dst, v.Int64(), 10) }), nil
	case parquet.Int96: // timestamps of Hive and old versions of Spark
		return timeCell(false, func(v parquet.Value) time.Time {
			const epoch = 2440588 // 1970-01-01 as a Julian day number
			n := v.Int96()
			ns := int64(n[1])<<32 | int64(n[0])
			return time.Unix((int64(n[2])-epoch)*24*60*60, ns)
		}), nil
	case parquet.Float:
		return floatCell(32, func(v parquet.Value) float64 { return float64(v.Float()) }), nil
	case parquet.Double:
		return floatCell(64, parquet.Value.Double), nil
	case parquet.ByteArray:
		return textCell(String, func(dst []byte, v parquet.Value) []byte { return append(dst, v.ByteArray()...) }), nil
	default:
		return nil, fmt.Errorf("values of type %s cannot be read", t)
	}
}

// logicalCell makes cells from values of a logical type. It returns nil if they read like the
// physical type.
func logicalCell(kind parquet.Kind, logical format.LogicalTypeValue) cellOf {
	switch l := logical.(type) {
	case *format.NullType: // of a column of nulls only, as pandas writes it
		return func(text []byte, _ parquet.Value) (Cell, []byte) { return Cell{}, text }
	case *format.TimestampType:
		unit := l.Unit.Value.Duration()
		return timeCell(!l.IsAdjustedToUTC, func(v parquet.Value) time.Time {
			perSecond := int64(time.Second / unit)
			n := v.Int64()
			return time.Unix(n/perSecond, n%perSecond*int64(unit))
		})
	case *format.DateType:
		return timeCell(true, func(v parquet.Value) time.Time { return time.Unix(int64(v.Int32())*24*60*60, 0) })
	case *format.DecimalType:
		return decimalCell(kind, uint8(l.Scale))
	case *format.UUIDType:
		return textCell(String, func(dst []byte, v parquet.Value) []byte { return appendUUID(dst, v.ByteArray()) })
	case *format.IntType:
		if !l.IsSigned && kind == parquet.Int64 {
			return textCell(Number, func(dst []byte, v parquet.Value) []byte { return strconv.AppendUint(dst, v.Uint64(), 10) })
		}
		if !l.IsSigned {
			return textCell(Number, func(dst []byte, v parquet.Value) []byte { return strconv.AppendUint(dst, uint64(v.Uint32()), 10) })
		}
	}
	return nil
}

// appendUUID appends a UUID as text, from its 16 bytes.
func appendUUID(dst, b []byte) []byte {
	return fmt.Appendf(dst, "%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func decimalCell(kind parquet.Kind, scale uint8) cellOf {
	return textCell(Number, func(dst []byte, v parquet.Value) []byte {
		switch kind {
		case parquet.Int32:
			return value.AppendDecimal(dst, int64(v.Int32()), scale)
		case parquet.Int64:
			return value.AppendDecimal(dst, v.Int64(), scale)
		}
		b := v.ByteArray() // two's complement, big-endian
		n := new(big.Int).SetBytes(b)
		if len(b) > 0 && b[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		if n.IsInt64() {
			return value.AppendDecimal(dst, n.Int64(), scale)
		}
		if scale == 0 {
			return n.Append(dst, 10)
		}
		return append(append(n.Append(dst, 10), "e-"...), strconv.Itoa(int(scale))...)
	})
}

// appendFloat appends a number; it returns nil for NaN and infinity, which JSON does not have. A whole number has no
// exponent: it may be an identity, since pandas writes whole numbers as floats if some are null.
func appendFloat(dst []byte, f float64, bits int) []byte {
	const exact = 1 << 53 // up to here all whole numbers are floats
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return nil
	case f == math.Trunc(f) && math.Abs(f) <= exact:
		return strconv.AppendFloat(dst, f, 'f', -1, bits)
	default:
		return strconv.AppendFloat(dst, f, 'g', -1, bits)
	}
}
