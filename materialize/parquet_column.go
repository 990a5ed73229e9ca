package materialize

import (
	"fmt"
	"math"
	"reflect"

	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/features/kinds"
)

// parquetRoot is the schema of a row: the library's own groups order their
// fields by name.
type parquetRoot struct {
	parquet.Group
	fields []parquet.Field
}

// Fields are the columns in their order.
func (r parquetRoot) Fields() []parquet.Field { return r.fields }

// GoType is that of a row in Go, which there is none of.
func (r parquetRoot) GoType() reflect.Type { return reflect.TypeFor[struct{}]() }

type parquetField struct {
	parquet.Node
	name string
}

func (f parquetField) Name() string { return f.name }

func (f parquetField) Value(reflect.Value) reflect.Value { panic("rows are written by their values") }

// parquetColumn is a column as Parquet has it: the leaves of its node.
type parquetColumn struct {
	name   string
	list   bool
	leaves []parquetLeaf
}

// parquetLeaf is where values of one type stand in a column.
type parquetLeaf struct {
	column int // in the file
	kind   kinds.Type
	scale  uint8
	level  int // the definition level of its values; that of its nulls is below
	of     func(*kinds.Item) kinds.Value
}

// The definition levels: in a column that may be null, in an element of its
// list, and where that may be null, too.
const (
	isCell = iota + 1
	isElement
	isPart
)

// parquet is the column and its node, its leaves counted from the first one.
func (c *Column) parquet(first int) (parquetColumn, parquet.Node) {
	pc := parquetColumn{name: c.Name}
	kind, scale, shape := c.typed()
	leaf := func(level int, kind kinds.Type, scale uint8, of func(*kinds.Item) kinds.Value) {
		pc.leaves = append(pc.leaves, parquetLeaf{column: first + len(pc.leaves), kind: kind, scale: scale, level: level, of: of})
	}
	value := func(level int, of func(*kinds.Item) kinds.Value) parquet.Node {
		if kind != kinds.Location {
			leaf(level, kind, scale, of)
			return parquet.Optional(parquetType(kind, scale))
		}
		degrees := func(of2 func(kinds.Value) float64) func(*kinds.Item) kinds.Value {
			return func(i *kinds.Item) kinds.Value {
				v := of(i)
				if v.IsNull() {
					return v
				}
				return kinds.Value{Type: kinds.Float, Flt: of2(v)}
			}
		}
		leaf(level, kinds.Float, 0, degrees(func(v kinds.Value) float64 { return v.Flt }))
		leaf(level, kinds.Float, 0, degrees(func(v kinds.Value) float64 { return v.Lon }))
		degree := parquetType(kinds.Float, 0)
		return parquet.Optional(parquet.Group{"lat": degree, "lon": degree})
	}
	valueOf := func(i *kinds.Item) kinds.Value { return i.Value }
	if shape == kinds.Scalar {
		return pc, value(isCell, valueOf)
	}
	pc.list = true
	if shape == kinds.List {
		return pc, parquet.Optional(parquet.List(value(isPart, valueOf)))
	}
	// The library orders these by name, and so the leaves.
	if shape == kinds.Categories {
		of, digits := c.category()
		leaf(isElement, of, digits, func(i *kinds.Item) kinds.Value { return i.Category })
		return pc, parquet.Optional(parquet.Map(parquetType(of, digits), value(isPart, valueOf)))
	}
	leaf(isElement, kinds.Int, 0, func(i *kinds.Item) kinds.Value { return kinds.Value{Type: kinds.Int, Num: i.Count} })
	element := parquet.Group{"count": parquetType(kinds.Int, 0)}
	if shape == kinds.Counts {
		element["value"] = value(isPart, valueOf)
	} else {
		element["from"] = value(isPart, func(i *kinds.Item) kinds.Value { return i.From })
		element["to"] = value(isPart, func(i *kinds.Item) kinds.Value { return i.To })
	}
	return pc, parquet.Optional(parquet.List(element))
}

// decimalDigits are those that a decimal of 64 bits may have in Parquet.
const decimalDigits = 18

// parquetType is the node of values of a type.
func parquetType(t kinds.Type, scale uint8) parquet.Node {
	switch t {
	case kinds.Int:
		return parquet.Int(64)
	case kinds.Float:
		return parquet.Leaf(parquet.DoubleType)
	case kinds.Decimal:
		return parquet.Decimal(int(scale), decimalDigits, parquet.Int64Type)
	case kinds.Bool:
		return parquet.Leaf(parquet.BooleanType)
	case kinds.Timestamp:
		return parquet.Timestamp(parquet.Millisecond)
	default:
		return parquet.String()
	}
}

// value is a value as the leaf holds it. The whole numbers of some features are
// neutral values of other types.
func (l *parquetLeaf) value(v kinds.Value) (parquet.Value, error) {
	switch {
	case v.IsNull():
		return parquet.NullValue(), nil
	case l.kind == kinds.String:
		return parquet.ByteArrayValue(v.Str), nil
	case l.kind == kinds.Float:
		return parquet.DoubleValue(v.Float64()), nil
	case l.kind == kinds.Bool:
		return parquet.BooleanValue(v.Num != 0), nil
	case l.kind == kinds.Decimal:
		num, ok := digits(v, l.scale)
		if !ok {
			return parquet.Value{}, fmt.Errorf("%s has more than the %d digits of a decimal in Parquet, %d of them behind the point; write a .csv",
				v.AppendText(nil), decimalDigits, l.scale)
		}
		return parquet.Int64Value(num), nil
	case v.Wide():
		return parquet.Value{}, fmt.Errorf("%s does not fit into the 64 bits of an integer in Parquet; write a .csv", v.AppendText(nil))
	default:
		return parquet.Int64Value(v.Num), nil
	}
}

// digits is a whole number or a decimal times 10^scale, if a decimal of Parquet
// can be as great.
func digits(v kinds.Value, scale uint8) (num int64, ok bool) {
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
