package expr

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/value"
)

// named are Names without tables, at their indexes.
type named []Variable

func (n named) Feature(name string) (int, Variable, error) {
	i := slices.IndexFunc(n, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return 0, Variable{}, fmt.Errorf("no feature %s", name)
	}
	return i, n[i], nil
}

func (n named) Column(table, _ string) (int, Variable, error) {
	return 0, Variable{}, fmt.Errorf("no table %s", table)
}

func (n named) Row(table, _ string) (int, Variable, error) {
	return 0, Variable{}, fmt.Errorf("no table %s", table)
}

func (n named) RowOfEvent(table, _ string) (int, Variable, error) {
	return 0, Variable{}, fmt.Errorf("no table %s", table)
}

func (n named) IsTable(string) bool { return false }

// drawElement draws a value of a type: usual, equal, extreme and hostile ones, and nulls.
func drawElement(t *rapid.T, typ value.Type) value.Value {
	if rapid.IntRange(0, 19).Draw(t, "null") == 0 {
		return value.Value{}
	}
	ints := rapid.OneOf(rapid.Int64Range(-1, 3), rapid.SampledFrom([]int64{math.MinInt64, math.MaxInt64, math.MaxInt64 - 1, 1 << 53}))
	switch typ {
	case value.String:
		return value.Value{Type: typ, Str: []byte(rapid.SampledFrom([]string{"", "a", "b", "ä", "\xff", "\x00", "DE", "de"}).Draw(t, "text"))}
	case value.Float:
		return value.Value{Type: typ, Flt: rapid.SampledFrom([]float64{
			0, 1, 2, -1, 0.1, 0.2, 5e-324, math.MaxFloat64, -math.MaxFloat64, 1e16, 1}).Draw(t, "float")}
	case value.Bool:
		return Truth(rapid.Bool().Draw(t, "bool"))
	case value.Decimal:
		v := value.Value{Type: typ, Num: ints.Draw(t, "decimal"), Scale: uint8(rapid.IntRange(0, 2).Draw(t, "scale"))}
		if rapid.IntRange(0, 9).Draw(t, "wide") == 0 {
			v.Carry = rapid.SampledFrom([]int64{1, -2, math.MaxInt64, math.MinInt64}).Draw(t, "carry")
		}
		return v
	default:
		return value.Value{Type: typ, Num: ints.Draw(t, "number")}
	}
}

// rational is a number as it is.
func rational(v value.Value) *big.Rat {
	if v.Type == value.Float {
		return new(big.Rat).SetFloat64(v.Flt)
	}
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(v.Scale)), nil)
	return new(big.Rat).SetFrac(v.Big(), scale)
}

// order compares two values of one type.
func order(a, b value.Value) int {
	if a.Type.Numeric() {
		return rational(a).Cmp(rational(b))
	}
	return value.Compare(a, b)
}

// Elements, lengths, extremes, sums, shares and membership are what plain loops over rational numbers give.
func TestElementsEqualAPlainModel(t *testing.T) {
	const none = "null"
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SampledFrom([]aggregate.Shape{aggregate.List, aggregate.Counts, aggregate.Bins, aggregate.Categories}).Draw(t, "shape")
		types := rapid.SampledFrom([]value.Type{value.String, value.Int, value.Float, value.Decimal, value.Bool, value.Timestamp})
		of := Variable{Name: "x", Type: types.Draw(t, "type"), Scale: 2, Shape: shape}
		element := of.Type
		if shape == aggregate.Counts || shape == aggregate.Bins {
			element = value.Int
		}
		key := value.Int
		switch shape {
		case aggregate.Counts:
			key = of.Type
		case aggregate.Categories:
			of.Category = types.Draw(t, "category")
			key = of.Category
		}
		given := Elements{Null: rapid.IntRange(0, 9).Draw(t, "no value") == 0, Lacks: rapid.IntRange(0, 3).Draw(t, "capped") == 0}
		var elements, keys []value.Value
		for range rapid.IntRange(0, 5).Draw(t, "elements") {
			var i aggregate.Item
			e, k := drawElement(t, element), drawElement(t, key)
			switch shape {
			case aggregate.Categories:
				i.Value, i.Category = e, k
			case aggregate.Counts, aggregate.Bins:
				if e.IsNull() {
					e = intOf(0)
				}
				i.Count = e.Num
				if i.Value = k; shape == aggregate.Bins {
					i.Value = value.Value{}
				}
			default:
				i.Value, k = e, e
			}
			given.Items, elements, keys = append(given.Items, i), append(elements, e), append(keys, k)
		}
		asked := drawElement(t, key)
		member := key
		if shape == aggregate.List {
			member = of.Type
		}
		about := drawElement(t, member)
		if len(keys) > 0 && rapid.Bool().Draw(t, "one of them") {
			about = rapid.SampledFrom(keys).Draw(t, "which")
			if key == member {
				asked = about
			}
		}
		features := named{of, {Name: "k", Type: key}, {Name: "m", Type: member}}
		values := []value.Value{{}, asked, about}
		result := func(text string) (value.Value, bool) {
			e, err := CompileOver(text, features, nil, value.Null)
			if err != nil {
				t.Fatalf("%s of %s of %s: %v", text, shape, of.Type, err)
			}
			v, err := e.EvalWith(values, []Elements{given, {}, {}}, nil)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if !v.IsNull() && v.Type != e.Type() {
				t.Fatalf("%s is of type %s and states %s", text, v.Type, e.Type())
			}
			return v, e.Beyond()
		}
		check := func(text, want string) {
			if given.Null {
				want = none
			}
			v, _ := result(text)
			got := string(v.AppendText(nil))
			if v.IsNull() {
				got = none
			}
			if got != want {
				t.Fatalf("%s is %s, want %s, of %+v", text, got, want, given)
			}
		}
		textOfValue := func(v value.Value) string {
			if v.IsNull() {
				return none
			}
			return string(v.AppendText(nil))
		}
		check("len(x)", fmt.Sprint(len(elements)))
		// Elements.
		want := none
		if shape == aggregate.List || shape == aggregate.Bins {
			for i := range elements {
				if !asked.IsNull() && !asked.Wide() && (asked.Num == int64(i) || asked.Num == int64(i-len(elements))) {
					want = textOfValue(elements[i])
				}
			}
		} else {
			for i := len(keys) - 1; i >= 0; i-- {
				if !asked.IsNull() && !keys[i].IsNull() && order(asked, keys[i]) == 0 {
					want = textOfValue(elements[i])
				}
			}
		}
		check("x[k]", want)
		// Membership.
		if shape != aggregate.Bins {
			want, against := "false", keys
			for _, v := range against {
				if !v.IsNull() && !about.IsNull() && order(v, about) == 0 {
					want = "true"
				}
			}
			if about.IsNull() || want == "false" && given.Lacks {
				want = none
			}
			check("m in x", want)
		}
		hasNull := slices.ContainsFunc(elements, func(v value.Value) bool { return v.IsNull() })
		least, greatest := none, none
		if !hasNull && len(elements) > 0 {
			least, greatest = textOfValue(slices.MinFunc(elements, order)), textOfValue(slices.MaxFunc(elements, order))
		}
		check("min(x)", least)
		check("max(x)", greatest)
		if !element.Numeric() {
			return
		}
		sum, share := new(big.Rat), none
		negative := false
		for _, v := range elements {
			if !hasNull {
				sum.Add(sum, rational(v))
				negative = negative || rational(v).Sign() < 0
			}
		}
		nearest, _ := sum.Float64()
		scaled := new(big.Rat).Mul(sum, big.NewRat(100, 1))
		tooLarge := element == value.Float && math.IsInf(nearest, 0) ||
			element != value.Float && new(big.Int).Quo(scaled.Num(), scaled.Denom()).BitLen() > 127 ||
			element == value.Int && new(big.Int).Quo(sum.Num(), sum.Denom()).BitLen() > 127
		got, beyond := result("sum(x)")
		switch {
		case given.Null || hasNull:
			if !got.IsNull() || beyond {
				t.Fatalf("the sum of %+v is %s", given, textOfValue(got))
			}
		case tooLarge:
			if !got.IsNull() || !beyond {
				t.Fatalf("the sum of %+v, which is too large, is %s, said to be too large: %t", given, textOfValue(got), beyond)
			}
		case element == value.Float && got.Flt != nearest, element != value.Float && rational(got).Cmp(sum) != 0:
			t.Fatalf("the sum of %+v is %s, want %s", given, textOfValue(got), sum)
		}
		if sum.Sign() != 0 && !negative && !hasNull && !tooLarge {
			if element == value.Float {
				share = string((&value.Value{Type: value.Float, Flt: slices.MaxFunc(elements, order).Flt / nearest}).AppendText(nil))
			} else {
				f, _ := new(big.Rat).Quo(rational(slices.MaxFunc(elements, order)), sum).Float64()
				share = string((&value.Value{Type: value.Float, Flt: f}).AppendText(nil))
			}
		}
		check("share_max(x)", share)
		if v, _ := result("share_max(x)"); v.Flt < 0 || v.Flt > 1 {
			t.Fatalf("the share of the greatest of %+v is %v", given, v.Flt)
		}
	})
}

// Expressions of elements have one canonical text, from which they compile again.
func TestElementsInCanonicalForm(t *testing.T) {
	features := named{
		{Name: "by", Type: value.Int, Shape: aggregate.Categories, Category: value.String},
		{Name: "last", Type: value.String, Shape: aggregate.List},
		{Name: "top", Type: value.Int, Shape: aggregate.Counts},
	}
	items := []Elements{
		{Items: []aggregate.Item{{Category: textOf([]byte("DE")), Value: intOf(3)}, {Category: textOf([]byte("a b")), Value: intOf(1)}}},
		{Items: []aggregate.Item{{Value: textOf([]byte("DE"))}}},
		{Items: []aggregate.Item{{Value: intOf(7), Count: 2}}},
	}
	for text, want := range map[string][2]string{
		`by["DE"]`:                        {`by.DE`, "int 3"},
		`by.DE`:                           {`by.DE`, "int 3"},
		`by?.DE`:                          {`by.DE`, "int 3"},
		`by["a b"]`:                       {`by["a b"]`, "int 1"},
		`by[last[0]]`:                     {`by[last[0]]`, "int 3"},
		`by["FR"] ?? 0`:                   {`by.FR ?? 0`, "int 0"},
		`$env["by"]["DE"]`:                {`$env.by.DE`, "int 3"},
		`last[-1]`:                        {`last[-1]`, "string DE"},
		`last[1]`:                         {`last[1]`, "null"},
		`top[7] + 1`:                      {`top[7] + 1`, "int 3"},
		`top[7.0]`:                        {`top[7]`, "int 2"},
		`'DE' in last`:                    {`"DE" in last`, "bool true"},
		`"FR" not in last`:                {`not ("FR" in last)`, "bool true"},
		`nil in last`:                     {`nil in last`, "null"},
		`7 in top && len(by) > 1`:         {`7 in top and len(by) > 1`, "bool true"},
		`share_max(by)`:                   {`share_max(by)`, "float 0.75"},
		`by | max()`:                      {`max(by)`, "int 3"},
		`lower(last[0]) + string(top[7])`: {`lower(last[0]) + string(top[7])`, "string de2"},
	} {
		for _, text := range []string{text, want[0]} {
			compiled, err := CompileOver(text, features, nil, value.Null)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			for _, e := range []*Expr{compiled, compiled.Clone()} {
				if v, err := e.EvalWith(make([]value.Value, 3), items, nil); err != nil || typed(v) != want[1] || e.Text != want[0] {
					t.Errorf("%s is %s, error %v, with the canonical text %s; want %s, %s", text, typed(v), err, e.Text, want[1], want[0])
				}
			}
		}
	}
}
