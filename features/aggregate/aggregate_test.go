package aggregate

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/DataDog/sketches-go/ddsketch/mapping"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

func TestAppendDecimal(t *testing.T) {
	for _, c := range []struct {
		unscaled int64
		scale    uint8
		want     string
	}{
		{16660, 2, "166.6"}, {16666, 2, "166.66"}, {100, 2, "1"}, {5, 2, "0.05"}, {50, 2, "0.5"}, {0, 2, "0"},
		{-5, 2, "-0.05"}, {-16660, 2, "-166.6"}, {7, 0, "7"}, {-9223372036854775808, 18, "-9.223372036854775808"},
		{9223372036854775807, 0, "9223372036854775807"},
	} {
		if got := string(value.AppendDecimal(nil, c.unscaled, c.scale)); got != c.want {
			t.Errorf("%d at scale %d is %s, want %s", c.unscaled, c.scale, got, c.want)
		}
	}
}

func TestAppendDecimalIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unscaled, scale := rapid.Int64().Draw(t, "unscaled"), rapid.Uint8Range(0, 18).Draw(t, "scale")
		text := string(value.AppendDecimal(nil, unscaled, scale))
		got, ok := new(big.Rat).SetString(text)
		want := new(big.Rat).SetFrac(big.NewInt(unscaled), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("%d at scale %d is %s, want the value %s", unscaled, scale, text, want)
		}
		if strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Fatalf("%s has a trailing zero", text)
		}
	})
}

// Different entities never have the same text.
func TestEntityTextsAreDistinct(t *testing.T) {
	values := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab|\`)), 0, 4, -1), 1, 3)
	text := func(parts []string) string {
		var dst []byte
		for i, p := range parts {
			dst = state.AppendEntity(dst, i == 0, value.Value{Type: value.String, Str: []byte(p)})
		}
		return string(dst)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		if len(a) != len(b) {
			return // one feature's entities have one number of values
		}
		if same := strings.Join(a, "\x00") == strings.Join(b, "\x00"); same != (text(a) == text(b)) {
			t.Fatalf("%q has the text %s, %q has %s: want equal texts for equal entities only", a, text(a), b, text(b))
		}
	})
}

// Equal numbers are the same entity and the same member, however they were written.
func TestNumbersHaveCanonicalTexts(t *testing.T) {
	a := (&value.Value{Type: value.Decimal, Num: 150, Scale: 2}).AppendText(nil)
	b := (&value.Value{Type: value.Decimal, Num: 15, Scale: 1}).AppendText(nil)
	if string(a) != "1.5" || string(b) != "1.5" {
		t.Errorf("the texts are %s and %s, want 1.5 twice", a, b)
	}
}

func TestFloorDiv(t *testing.T) {
	for _, c := range [][3]int64{{7, 2, 3}, {-7, 2, -4}, {-8, 2, -4}, {0, 5, 0}, {-1, 86400000, -1}} {
		if got := state.FloorDiv(c[0], c[1]); got != c[2] {
			t.Errorf("%d/%d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// An event is late if its tile ends before what is kept, and not earlier.
func TestLate(t *testing.T) {
	s := state.Series{Tile: 1000, Keep: 5000}
	for _, c := range []struct {
		at, now int64
		late    bool
	}{{5000, 10000, false}, {4999, 10000, true}, {5999, 10999, false}, {5000, 11000, true}, {-1, 4999, false}} {
		if got := s.Late(c.at, c.now); got != c.late {
			t.Errorf("event of %d at %d: late is %v, want %v", c.at, c.now, got, c.late)
		}
	}
	if forever := (&state.Series{Tile: 1000}); forever.Late(0, 1<<60) {
		t.Error("an event of a series that is kept forever was late")
	}
}

// Bytes copied into a batch do not change when it copies more.
func TestBatchOwnsItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := new(state.Batch)
		for round := range 2 {
			var held [][]byte
			var want []string
			for i := range rapid.IntRange(0, 300).Draw(t, "pieces") {
				text := strings.Repeat(strconv.Itoa(i), 1+i%50)
				held, want = append(held, b.Hold([]byte(text))), append(want, text)
			}
			for i := range held {
				if string(held[i]) != want[i] {
					t.Fatalf("round %d, piece %d is %q, want %q", round, i, held[i], want[i])
				}
			}
			b.Reset()
		}
	})
}

// A value's text parses back to the value.
func TestParseText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := value.Value{Type: rapid.SampledFrom(distinctTypes).Draw(t, "type")}
		switch v.Type {
		case value.String:
			v.Str = []byte(rapid.String().Draw(t, "text"))
		case value.Float:
			v.Flt = rapid.Float64().Draw(t, "float")
		case value.Bool:
			v.Num = rapid.Int64Range(0, 1).Draw(t, "bool")
		default:
			v.Num = rapid.Int64().Draw(t, "number")
		}
		if v.Type == value.Decimal {
			v.Scale = rapid.Uint8Range(0, 18).Draw(t, "scale")
		}
		text := string(v.AppendText(nil))
		if got := value.ParseText(v.Type, v.Scale, text); got.IsNull() || value.Compare(got, v) != 0 || got.Scale != v.Scale {
			t.Fatalf("%s is read as %+v, want %+v", text, got, v)
		}
	})
	for text, of := range map[string]value.Type{"1.234": value.Decimal, "x": value.Int, "maybe": value.Bool, "1,2": value.Location, "1e": value.Float} {
		if got := value.ParseText(of, 2, text); !got.IsNull() {
			t.Errorf("%q is read as the %s %+v, want null", text, of, got)
		}
	}
}

// The bin of every value represents it within the stated error.
func TestDDSketchBins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := Call{Type: rapid.SampledFrom([]value.Type{value.Int, value.Decimal, value.Float}).Draw(t, "type"), Scale: 2}
		c.Error = float64(rapid.IntRange(1, 100).Draw(t, "error")) / 1000
		d := newDDSketch(c.Type, c.Error)
		draw := func() value.Value {
			v := value.Value{Type: c.Type, Scale: c.Scale}
			if c.Type == value.Float {
				v.Flt = rapid.OneOf(rapid.Float64(), rapid.Float64Range(1e306, math.MaxFloat64)).Draw(t, "float")
				if math.Abs(v.Flt) < 1e-300 { // denormals have fewer digits
					v.Flt = 0
				}
			} else {
				v.Num = rapid.OneOf(rapid.Int64(), rapid.Int64Range(-2000, 2000)).Draw(t, "number")
			}
			return v
		}
		v, w := draw(), draw()
		of := func(v value.Value) bin { return binOf(string(d.appendKey(nil, v))) }
		got := d.value(c, of(v))
		if off := math.Abs(got.Float64() - v.Float64()); off > c.Error*math.Abs(v.Float64())*(1+1e-9) {
			t.Fatalf("%s stands for %s, which is off by more than %v", got.AppendText(nil), v.AppendText(nil), c.Error)
		}
		if value.Compare(v, w) < 0 && of(v).compare(of(w)) > 0 {
			t.Fatalf("the bin of %s comes after that of %s", v.AppendText(nil), w.AppendText(nil))
		}
	})
}

// So does that of the least floats, but for the rounding to as few digits as they have.
func TestDDSketchBinsOfDenormals(t *testing.T) {
	for x := math.SmallestNonzeroFloat64; x < 1e-305; x *= 1.7 {
		c := Call{Type: value.Float, Error: 0.01}
		d := newDDSketch(c.Type, c.Error)
		got := d.value(c, binOf(string(d.appendKey(nil, value.Value{Type: value.Float, Flt: x})))).Flt
		if off := math.Abs(got - x); off > c.Error*x+math.SmallestNonzeroFloat64 {
			t.Errorf("%g stands for %g", got, x)
		}
	}
}

// Bins equal those of the authors' library, which counts them from the lower edge, and puts the edge itself into the
// bin above; ours puts it into the bin below.
func TestDDSketchEqualsLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		relative := float64(rapid.IntRange(1, 100).Draw(t, "error")) / 1000
		theirs, err := mapping.NewLogarithmicMapping(relative)
		if err != nil {
			t.Fatal(err)
		}
		x := rapid.Float64Range(1e-300, 1e300).Draw(t, "value")
		ours := newDDSketch(value.Float, relative)
		b := binOf(string(ours.appendKey(nil, value.Value{Type: value.Float, Flt: x})))
		index := theirs.Index(x)
		if lower := theirs.LowerBound(index); math.Abs(x-lower) <= 1e-9*x || math.Abs(theirs.LowerBound(index+1)-x) <= 1e-9*x {
			t.Skip("on the edge of two bins")
		}
		if b.index != index+1 {
			t.Fatalf("%g is in bin %d, in the library's sketch in %d", x, b.index, index)
		}
		got, want := ours.value(Call{Type: value.Float, Error: relative}, b).Flt, theirs.Value(index)
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf("%g stands for bin %d, in the library's sketch %g", got, b.index, want)
		}
	})
}

// Above the limit of categories the first ones are answered, each with all its events.
func TestPerCategory(t *testing.T) {
	category := func(text string) value.Value { return value.Value{Type: value.String, Str: []byte(text)} }
	events := []Sample{
		{Category: category("b"), Value: integer(2)}, {Category: category("c"), Value: integer(4)}, {Value: integer(8)},
		{Category: category("a")}, {Category: category("b"), Value: integer(16)}, {Category: category("d"), Value: integer(32)},
	}
	written := func(r Result) string {
		text := fmt.Sprint(r.Found, " ", r.Capped)
		for _, i := range r.Items {
			text += fmt.Sprintf(" %s=%s", i.Category.Str, i.Value.AppendText(nil))
		}
		return text
	}
	for _, test := range []struct {
		function Mergeable
		max      int
		want     string
	}{
		{sum{}, 2, "true true b=18 c=4"}, {sum{}, 3, "true false b=18 c=4 d=32"},
		{count{}, 2, "true true a=1 b=2"}, {avg{}, 9, "true false b=9 c=4 d=32"},
	} {
		c := Call{Type: value.Int, Max: test.max}
		if got := written(FoldPer(test.function, c, 0, events)); got != test.want {
			t.Errorf("%s of the events: %s, want %s", test.function.Spec().Name, got, test.want)
		}
		var s []state.WindowState
		for _, m := range test.function.Measures(c) {
			var per state.WindowState
			for _, text := range []string{"a", "b", "c", "d"} {
				of := slices.DeleteFunc(slices.Clone(events), func(e Sample) bool { return string(e.Category.Str) != text })
				if one := sliceOf(m, c, of); !one.Empty() {
					per.Groups = append(per.Groups, state.Group{Key: text, WindowState: one})
				}
			}
			s = append(s, per)
		}
		if got := written(MergePer(test.function, c, value.String, 0, 0, s)); got != test.want {
			t.Errorf("%s of tiles: %s, want %s", test.function.Spec().Name, got, test.want)
		}
	}
	if r := FoldPer(sum{}, Call{Type: value.Int, Max: 2}, 0, nil); r.Found || r.Items != nil {
		t.Errorf("without events: got %+v, want no value", r)
	}
}

// The table names each function once and finds it.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All {
		s := k.Spec()
		name := s.Name + " " + s.Method
		if seen[name] {
			t.Errorf("%s is listed twice", name)
		}
		seen[name] = true
		if found, ok := Find(s.Name, s.Method); !ok || found != k {
			t.Errorf("%s is not found", name)
		}
		if s.Exact == (s.StandardError > 0) {
			t.Errorf("%s must either be exact or state a standard error", name)
		}
	}
	if k, _ := Find("count_distinct", ""); k != (countDistinct{}) {
		t.Errorf("count_distinct without a method is %T, want countDistinct", k)
	}
	if _, ok := Find("median", ""); ok {
		t.Error("median was found")
	}
}
