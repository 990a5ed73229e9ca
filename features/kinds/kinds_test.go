package kinds

import (
	"math/big"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"
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
		if got := string(AppendDecimal(nil, c.unscaled, c.scale)); got != c.want {
			t.Errorf("%d at scale %d is %s, want %s", c.unscaled, c.scale, got, c.want)
		}
	}
}

func TestAppendDecimalIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unscaled, scale := rapid.Int64().Draw(t, "unscaled"), rapid.Uint8Range(0, 18).Draw(t, "scale")
		text := string(AppendDecimal(nil, unscaled, scale))
		got, ok := new(big.Rat).SetString(text)
		want := new(big.Rat).SetFrac(big.NewInt(unscaled), new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale)), nil))
		if !ok || got.Cmp(want) != 0 {
			t.Fatalf("%d at scale %d is %s", unscaled, scale, text)
		}
		if strings.Contains(text, ".") && strings.HasSuffix(text, "0") {
			t.Fatalf("%s has a trailing zero", text)
		}
	})
}

// Two entities never have one text.
func TestEntitiesHaveTextsOfTheirOwn(t *testing.T) {
	values := rapid.SliceOfN(rapid.StringOfN(rapid.RuneFrom([]rune(`ab|\`)), 0, 4, -1), 1, 3)
	text := func(parts []string) string {
		var dst []byte
		for i, p := range parts {
			dst = AppendEntity(dst, i == 0, Value{Type: String, Str: []byte(p)})
		}
		return string(dst)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := values.Draw(t, "a"), values.Draw(t, "b")
		if len(a) != len(b) {
			return // one feature's entities have one number of values
		}
		if same := strings.Join(a, "\x00") == strings.Join(b, "\x00"); same != (text(a) == text(b)) {
			t.Fatalf("%q is %s, %q is %s", a, text(a), b, text(b))
		}
	})
}

// Equal numbers are one entity and one member, however they were written.
func TestNumbersHaveOneText(t *testing.T) {
	a := Value{Type: Decimal, Num: 150, Scale: 2}.AppendText(nil)
	b := Value{Type: Decimal, Num: 15, Scale: 1}.AppendText(nil)
	if string(a) != "1.5" || string(b) != "1.5" {
		t.Errorf("%s and %s", a, b)
	}
}

func TestFloorDiv(t *testing.T) {
	for _, c := range [][3]int64{{7, 2, 3}, {-7, 2, -4}, {-8, 2, -4}, {0, 5, 0}, {-1, 86400000, -1}} {
		if got := FloorDiv(c[0], c[1]); got != c[2] {
			t.Errorf("%d/%d is %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// An event is late when its tile ends before what is kept, and not before.
func TestLate(t *testing.T) {
	s := Series{Tile: 1000, Keep: 5000}
	for _, c := range []struct {
		at, now int64
		late    bool
	}{{5000, 10000, false}, {4999, 10000, true}, {5999, 10999, false}, {5000, 11000, true}, {-1, 4999, false}} {
		if got := s.Late(c.at, c.now); got != c.late {
			t.Errorf("event of %d at %d: late is %v", c.at, c.now, got)
		}
	}
	if forever := (&Series{Tile: 1000}); forever.Late(0, 1<<60) {
		t.Error("what is kept for ever was late")
	}
}

// Bytes that a batch was given to hold do not change when it holds more.
func TestBatchHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := new(Batch)
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

// The merge side of every kind, fed the cells and members of single events,
// says what its fold says of them.
func TestMergeOfSingleEventsIsTheFold(t *testing.T) {
	for _, kind := range All {
		k, ok := kind.(Tiled)
		if !ok {
			continue
		}
		spec := k.Spec()
		t.Run(spec.Name+spec.Method, func(t *testing.T) {
			types := spec.Types
			if types == nil {
				types = []Type{Null}
			}
			rapid.Check(t, func(t *rapid.T) {
				c := Call{Type: rapid.SampledFrom(types).Draw(t, "type"), Scale: 2, Max: 1 << 30}
				events := rapid.SliceOfN(samples(c), 0, 20).Draw(t, "events")
				got, want := k.Merge(c, slicesOf(k, c, events)), k.Fold(c, 0, events)
				if string(got.Value.AppendText(nil)) != string(want.Value.AppendText(nil)) || got.Found != want.Found {
					t.Fatalf("%+v, want %+v", got, want)
				}
			})
		})
	}
}

func samples(c Call) *rapid.Generator[Sample] {
	return rapid.Custom(func(t *rapid.T) Sample {
		n := rapid.Int64Range(-50, 50).Draw(t, "n")
		v := Value{Type: c.Type, Num: n, Scale: c.Scale, Flt: float64(n) / 4, Str: strconv.AppendInt(nil, n, 10)}
		if c.Type == Bool {
			v.Num = n & 1
		}
		if rapid.IntRange(0, 4).Draw(t, "null") == 0 {
			v = Value{}
		}
		return Sample{Time: rapid.Int64Range(0, 1000).Draw(t, "time"), Value: v}
	})
}

// slicesOf is what the series of a kind hold of events, a tile for each event.
func slicesOf(k Tiled, c Call, events []Sample) []Slice {
	var out []Slice
	for _, m := range k.Measures(c) {
		var s Slice
		members := map[string]bool{}
		for i, e := range events {
			if m != CountEvents && e.Value.IsNull() {
				continue
			}
			members[string(e.Value.AppendText(nil))] = true
			switch m {
			case CountEvents, CountValues:
				s.Cells = append(s.Cells, Cell{Tile: int64(i), Value: Value{Type: Int, Num: 1}})
			case Sum, Min, Max:
				v := e.Value
				if v.Type != Float {
					v.Flt = 0
				}
				s.Cells = append(s.Cells, Cell{Tile: int64(i), Value: v})
			}
		}
		switch m.State() {
		case Members:
			for text := range members {
				s.Members = append(s.Members, text)
			}
		case Sketches, LastSeen:
			s.Count = int64(len(members))
		}
		out = append(out, s)
	}
	return out
}

// The table names each kind once, and finds them.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All {
		s := k.Spec()
		name := s.Name + " " + s.Method
		if seen[name] {
			t.Errorf("%s stands twice", name)
		}
		seen[name] = true
		if found, ok := Find(s.Name, s.Method); !ok || found != k {
			t.Errorf("%s is not found", name)
		}
		if s.Exact == (s.StandardError > 0) {
			t.Errorf("%s is exact and estimates, or neither", name)
		}
	}
	if k, _ := Find("count_distinct", ""); k != (countDistinct{}) {
		t.Errorf("count_distinct is %T by default", k)
	}
	if _, ok := Find("median", ""); ok {
		t.Error("median was found")
	}
}
