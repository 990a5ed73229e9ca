package materialize

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// parquetRoot is the schema of a row. It keeps the order of the fields; the library's own groups
// sort them by name.
type parquetRoot struct {
	parquet.Group
	fields []parquet.Field
}

// Fields returns the columns in their order.
func (r parquetRoot) Fields() []parquet.Field { return r.fields }

// GoType is empty: rows have no type in Go.
func (r parquetRoot) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type parquetField struct {
	parquet.Node
	name string
}

func (f parquetField) Name() string { return f.name }

func (f parquetField) Value(reflect.Value) reflect.Value { panic("rows are written by their values") }

// parquetColumn is a column in Parquet: the leaves of its node.
type parquetColumn struct {
	name   string
	list   bool
	leaves []parquetLeaf
}

// parquetLeaf is the part of a column that holds values of one type.
type parquetLeaf struct {
	column int // in the file
	typ    value.Type
	scale  uint8
	level  int // the definition level of its values; its nulls have a lower one
	of     func(*aggregate.Item) value.Value
}

// The definition levels of a value in a nullable column, in an element of its list, and in a
// nullable part of that element.
const (
	isCell = iota + 1
	isElement
	isPart
)

// Decimals is the type of decimals in Parquet.
type Decimals string

// The types of decimals.
const (
	FloatDecimals  Decimals = "float"   // DOUBLE, the nearest one: what libraries of models take
	TextDecimals   Decimals = "string"  // STRING
	NativeDecimals Decimals = "decimal" // DECIMAL(18, scale), which pandas reads as objects
)

// as returns the type of a column's values.
func (d Decimals) as(typ value.Type, scale uint8) (value.Type, uint8) {
	switch {
	case typ != value.Decimal || d == NativeDecimals:
		return typ, scale
	case d == TextDecimals:
		return value.String, 0
	default:
		return value.Float, 0
	}
}

// parquet returns the column and its node. Its leaves are numbered from first.
func (c *Column) parquet(first int, decimals Decimals) (parquetColumn, parquet.Node) {
	pc := parquetColumn{name: c.Name}
	typ, scale, shape := c.typed()
	typ, scale = decimals.as(typ, scale)
	leaf := func(level int, typ value.Type, scale uint8, of func(*aggregate.Item) value.Value) {
		pc.leaves = append(pc.leaves, parquetLeaf{column: first + len(pc.leaves), typ: typ, scale: scale, level: level, of: of})
	}
	val := func(level int, of func(*aggregate.Item) value.Value) parquet.Node {
		if typ != value.Location {
			leaf(level, typ, scale, of)
			return parquet.Optional(parquetType(typ, scale))
		}
		degrees := func(of2 func(value.Value) float64) func(*aggregate.Item) value.Value {
			return func(i *aggregate.Item) value.Value {
				v := of(i)
				if v.IsNull() {
					return v
				}
				return value.Value{Type: value.Float, Flt: of2(v)}
			}
		}
		leaf(level, value.Float, 0, degrees(func(v value.Value) float64 { return v.Flt }))
		leaf(level, value.Float, 0, degrees(func(v value.Value) float64 { return v.Lon }))
		degree := parquetType(value.Float, 0)
		return parquet.Optional(parquet.Group{"lat": degree, "lon": degree})
	}
	valueOf := func(i *aggregate.Item) value.Value { return i.Value }
	if c.of == identity || c.of == eventTime {
		leaf(0, typ, scale, valueOf)
		return pc, parquetType(typ, scale)
	}
	if shape == aggregate.Scalar {
		return pc, val(isCell, valueOf)
	}
	pc.list = true
	if shape == aggregate.List {
		return pc, parquet.Optional(parquet.List(val(isPart, valueOf)))
	}
	// The library sorts these by name, so the leaves are in that order.
	if shape == aggregate.Categories {
		of, digits := decimals.as(c.category())
		leaf(isElement, of, digits, func(i *aggregate.Item) value.Value { return i.Category })
		return pc, parquet.Optional(parquet.Map(parquetType(of, digits), val(isPart, valueOf)))
	}
	leaf(isElement, value.Int, 0, func(i *aggregate.Item) value.Value { return value.Value{Type: value.Int, Num: i.Count} })
	element := parquet.Group{"count": parquetType(value.Int, 0)}
	if shape == aggregate.Counts {
		element["value"] = val(isPart, valueOf)
	} else {
		element["from"] = val(isPart, func(i *aggregate.Item) value.Value { return i.From })
		element["to"] = val(isPart, func(i *aggregate.Item) value.Value { return i.To })
	}
	return pc, parquet.Optional(parquet.List(element))
}

// decimalDigits is the most digits that a 64-bit decimal may have in Parquet.
const decimalDigits = 18

// parquetType returns the node for values of a type.
func parquetType(t value.Type, scale uint8) parquet.Node {
	switch t {
	case value.Int:
		return parquet.Int(64)
	case value.Float:
		return parquet.Leaf(parquet.DoubleType)
	case value.Decimal:
		return parquet.Decimal(int(scale), decimalDigits, parquet.Int64Type)
	case value.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case value.Timestamp:
		return parquet.Timestamp(parquet.Millisecond)
	default:
		return parquet.String()
	}
}

// value converts a value to the leaf's type. Some features have a whole number as the neutral value
// of another type.
func (l *parquetLeaf) value(v value.Value) (parquet.Value, error) {
	switch {
	case v.IsNull():
		return parquet.NullValue(), nil
	case l.typ == value.String && v.Type != value.String:
		return parquet.ByteArrayValue(v.AppendText(nil)), nil
	case l.typ == value.String && !utf8.Valid(v.Str): // as a column that is passed on may have
		return parquet.Value{}, errors.New("the text is not valid UTF-8, as a string in Parquet must be; convert the file, or write a .csv")
	case l.typ == value.String:
		return parquet.ByteArrayValue(v.Str), nil
	case l.typ == value.Float:
		return parquet.DoubleValue(v.Float64()), nil
	case l.typ == value.Bool:
		return parquet.BooleanValue(v.Num != 0), nil
	case l.typ == value.Decimal:
		num, ok := digits(v, l.scale)
		if !ok {
			return parquet.Value{}, fmt.Errorf("%s has more than the %d digits of a decimal in Parquet, %d of them after the decimal point; write decimals as float or string",
				v.AppendText(nil), decimalDigits, l.scale)
		}
		return parquet.Int64Value(num), nil
	case v.Wide():
		return parquet.Value{}, fmt.Errorf("%s does not fit into the 64 bits of an integer in Parquet; write a .csv", v.AppendText(nil))
	default:
		return parquet.Int64Value(v.Num), nil
	}
}

// digits returns a whole number or a decimal times 10^scale. ok is false if it does not fit a
// Parquet decimal.
func digits(v value.Value, scale uint8) (num int64, ok bool) {
	const most = 1e18 - 1
	if v.Wide() {
		return 0, false
	}
	num = v.Num
	for ; v.Scale < scale; v.Scale++ {
		if num > math.MaxInt64/10 || num < math.MinInt64/10 {
			return 0, false
		}
		num *= 10
	}
	return num, -most <= num && num <= most
}
