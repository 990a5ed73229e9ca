package aggregate

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-stream/weir/value"
)

// naive computes the answer of every function by other means than its Fold: sums over pairs,
// rationals, vectors and nested loops. The answer is text as written makes it; values are the
// events that have one.
var naive = map[string]func(c Call, at int64, events, values []Sample) string{
	"count": func(_ Call, _ int64, events, _ []Sample) string { return strconv.Itoa(len(events)) },
	"sum": func(c Call, _ int64, _, values []Sample) string {
		if len(values) == 0 {
			return "0"
		}
		return number(totalOf(values))
	},
	"avg": func(_ Call, _ int64, _, values []Sample) string {
		if len(values) == 0 {
			return "null"
		}
		return number(new(big.Rat).Quo(totalOf(values), big.NewRat(int64(len(values)), 1)))
	},
	"min": func(_ Call, _ int64, _, values []Sample) string {
		return where(values, func(v Sample) bool { return all(values, func(o Sample) bool { return !less(o, v) }) })
	},
	"max": func(_ Call, _ int64, _, values []Sample) string {
		return where(values, func(v Sample) bool { return all(values, func(o Sample) bool { return !less(v, o) }) })
	},
	"count_distinct": func(c Call, _ int64, _, values []Sample) string {
		if c.Members != nil {
			return memberships(c, values)
		}
		return strconv.Itoa(len(groups(values)))
	},
	"seen":                  func(c Call, _ int64, _, values []Sample) string { return memberships(c, values) },
	"approx_count_distinct": func(_ Call, _ int64, _, values []Sample) string { return strconv.Itoa(len(groups(values))) },
	"variance":              func(_ Call, _ int64, _, values []Sample) string { return spread(values, 1, false) },
	"var_samp":              func(_ Call, _ int64, _, values []Sample) string { return spread(values, 1, false) },
	"var_pop":               func(_ Call, _ int64, _, values []Sample) string { return spread(values, 0, false) },
	"stddev":                func(_ Call, _ int64, _, values []Sample) string { return spread(values, 1, true) },
	"stddev_samp":           func(_ Call, _ int64, _, values []Sample) string { return spread(values, 1, true) },
	"stddev_pop":            func(_ Call, _ int64, _, values []Sample) string { return spread(values, 0, true) },
	"set": func(c Call, _ int64, _, values []Sample) string {
		if c.Members != nil {
			return memberships(c, values)
		}
		var texts []string
		for rest := groups(values); len(rest) > 0; {
			least := 0
			for i := range rest {
				if less(rest[i][0], rest[least][0]) {
					least = i
				}
			}
			texts = append(texts, textOf(rest[least][0].Value))
			rest = slices.Delete(rest, least, least+1)
		}
		return listed(texts)
	},
	"first": func(_ Call, _ int64, _, values []Sample) string { return at(values, 0) },
	"last":  func(_ Call, _ int64, _, values []Sample) string { return at(values, len(values)-1) },
	"lag":   func(c Call, _ int64, _, values []Sample) string { return at(values, len(values)-1-c.N) },
	"first_k": func(c Call, _ int64, _, values []Sample) string {
		var texts []string
		for i := 0; i < c.N && i < len(values); i++ {
			texts = append(texts, at(values, i))
		}
		return listed(texts)
	},
	"last_k": func(c Call, _ int64, _, values []Sample) string {
		var texts []string
		for i := len(values) - 1; i >= 0 && len(texts) < c.N; i-- {
			texts = append(texts, at(values, i))
		}
		return listed(texts)
	},
	"last_distinct_k": func(c Call, _ int64, _, values []Sample) string {
		var texts []string
		for i := len(values) - 1; i >= 0; i-- {
			text := at(values, i)
			if !slices.Contains(texts, text) {
				texts = append(texts, text)
			}
		}
		return listed(texts[:min(len(texts), c.N)])
	},
	"diff": func(_ Call, _ int64, _, values []Sample) string {
		if len(values) < 2 {
			return "null"
		}
		newer, older := values[len(values)-1], values[len(values)-2]
		units := new(big.Int).Sub(newer.Value.Big(), older.Value.Big())
		if !units.IsInt64() {
			return "null"
		}
		return number(new(big.Rat).Sub(rational(newer), rational(older)))
	},
	"time_since_first": func(_ Call, at int64, events, _ []Sample) string {
		most := "null"
		for i, e := range events {
			if i == 0 || e.Time < events[0].Time {
				most = strconv.FormatInt(at-e.Time, 10)
			}
		}
		return most
	},
	"time_since_last": func(_ Call, at int64, events, _ []Sample) string {
		text := "null"
		for _, e := range events {
			text = strconv.FormatInt(at-e.Time, 10)
		}
		return text
	},
	"idle_since": func(_ Call, _ int64, events, _ []Sample) string {
		text := "null"
		for _, e := range events {
			text = strconv.FormatInt(e.Time, 10)
		}
		return text
	},
	"active": func(c Call, _ int64, events, _ []Sample) string {
		units := map[int64]bool{}
		for _, e := range events {
			units[int64(math.Floor(float64(e.Time)/float64(c.Duration)))] = true
		}
		return strconv.Itoa(len(units))
	},
	"mode": func(_ Call, _ int64, _, values []Sample) string {
		g := ranked(values)
		if len(g) == 0 {
			return "null"
		}
		return textOf(g[0][0].Value)
	},
	"top_k": func(c Call, _ int64, _, values []Sample) string {
		var texts []string
		for i, g := range ranked(values) {
			if i < c.N {
				texts = append(texts, fmt.Sprintf("%s:%d", textOf(g[0].Value), len(g)))
			}
		}
		return listed(texts)
	},
	"entropy": func(_ Call, _ int64, _, values []Sample) string {
		if len(values) == 0 {
			return "null"
		}
		bits := 0.0
		for _, g := range groups(values) {
			share := float64(len(g)) / float64(len(values))
			bits -= share * math.Log2(share)
		}
		return fmt.Sprint(bits)
	},
	"histogram": func(c Call, _ int64, _, values []Sample) string {
		var texts []string
		for i := 0; i <= len(c.Bins) && len(values) > 0; i++ {
			from, to, n := "null", "null", 0
			if i > 0 {
				from = textOf(c.Bins[i-1])
			}
			if i < len(c.Bins) {
				to = textOf(c.Bins[i])
			}
			for _, v := range values {
				if (i == 0 || !less(v, Sample{Value: c.Bins[i-1]})) && (i == len(c.Bins) || less(v, Sample{Value: c.Bins[i]})) {
					n++
				}
			}
			texts = append(texts, fmt.Sprintf("%s..%s:%d", from, to, n))
		}
		return listed(texts)
	},
	"quantile": func(c Call, _ int64, _, values []Sample) string {
		share, _ := new(big.Rat).SetString(fmt.Sprint(c.P))
		reached := func(v Sample) bool {
			n := 0
			for _, o := range values {
				if !less(v, o) {
					n++
				}
			}
			return big.NewRat(int64(n), int64(len(values))).Cmp(share) >= 0
		}
		return where(values, func(v Sample) bool {
			return reached(v) && all(values, func(o Sample) bool { return !less(o, v) || !reached(o) })
		})
	},
	"ratio": func(_ Call, _ int64, events, _ []Sample) string {
		if len(events) == 0 {
			return "null"
		}
		share := new(big.Rat)
		for _, e := range events {
			if e.Holds {
				share.Add(share, big.NewRat(1, int64(len(events))))
			}
		}
		return number(share)
	},
	"streak": func(_ Call, _ int64, events, _ []Sample) string {
		n := 0
		for _, e := range events {
			n++
			if !e.Holds {
				n = 0
			}
		}
		return strconv.Itoa(n)
	},
	"exp_decay_sum": func(c Call, at int64, _, values []Sample) string {
		sum := 0.0
		for _, v := range values {
			f, _ := rational(v).Float64()
			sum += f * math.Pow(0.5, float64(at-v.Time)/float64(c.Duration))
		}
		return fmt.Sprint(sum)
	},
	"distance": func(_ Call, _ int64, _, values []Sample) string {
		if len(values) < 2 {
			return "null"
		}
		return fmt.Sprint(arc(values[len(values)-2].Value, values[len(values)-1].Value))
	},
	"speed": func(_ Call, _ int64, _, values []Sample) string {
		if len(values) < 2 {
			return "null"
		}
		older, newer := values[len(values)-2], values[len(values)-1]
		elapsed := newer.Time - older.Time
		if elapsed == 0 {
			elapsed = 1
		}
		return fmt.Sprint(arc(older.Value, newer.Value) * 3_600_000 / float64(elapsed))
	},
}

// written formats a result as naive does.
func written(r Result, s Spec, asked bool) string {
	if asked {
		s.Shape = List // a Bool for each member, found or not
	} else if !r.Found {
		return textOf(s.Neutral)
	}
	if s.Shape == Scalar {
		return textOf(r.Value)
	}
	var texts []string
	for _, i := range r.Items {
		switch s.Shape {
		case List:
			texts = append(texts, textOf(i.Value))
		case Counts:
			texts = append(texts, fmt.Sprintf("%s:%d", textOf(i.Value), i.Count))
		case Bins:
			texts = append(texts, fmt.Sprintf("%s..%s:%d", textOf(i.From), textOf(i.To), i.Count))
		}
	}
	return listed(texts)
}

// same compares numbers up to the rounding of floats, and everything else exactly.
func same(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && math.Abs(x-y) <= 1e-9*max(1, math.Abs(x))
}

func drawCall(t *rapid.T, s Spec) Call {
	c := Call{Max: 1 << 20}
	if s.Types != nil {
		c.Type = rapid.SampledFrom(s.Types).Draw(t, "type")
	}
	if c.Type == value.Decimal {
		c.Scale = 2
	}
	if s.Members == MembersRequired || s.Members == MembersOptional && rapid.Bool().Draw(t, "asked") {
		for _, n := range rapid.SliceOfN(rapid.Int64Range(-30, 30), 1, 5).Draw(t, "members") {
			c.Members = append(c.Members, valueOf(c, n))
		}
	}
	for _, p := range s.Parameters {
		switch p.Type {
		case Whole:
			c.N = rapid.IntRange(p.Min, p.Min+5).Draw(t, p.Name)
		case Accuracy:
			c.Error = 0.01
		case Fraction:
			c.P = float64(rapid.IntRange(0, 100).Draw(t, p.Name)) / 100
		case Span:
			c.Duration = rapid.Int64Range(1, 500).Draw(t, p.Name)
		case Edges:
			for _, n := range rapid.SliceOfNDistinct(rapid.Int64Range(-50, 50), 1, 5, rapid.ID).Draw(t, p.Name) {
				c.Bins = append(c.Bins, valueOf(c, n))
			}
			slices.SortFunc(c.Bins, value.Compare)
		}
	}
	return c
}

// valueOf returns a value of a call's type for a small number: for some numbers one at the edges of the type.
func valueOf(c Call, n int64) value.Value {
	edges := map[int64]int64{30: math.MaxInt64, 29: math.MaxInt64 - 1, 28: 1e12 + 1, 27: 1e12 - 1, -29: math.MinInt64 + 1, -30: math.MinInt64}
	if edge, ok := edges[n]; ok && (c.Type == value.Int || c.Type == value.Decimal) {
		n = edge
	}
	switch c.Type {
	case value.Float:
		if n == 30 {
			return value.Value{Type: value.Float, Flt: math.SmallestNonzeroFloat64}
		}
		return value.Value{Type: value.Float, Flt: float64(n) / 4}
	case value.String:
		if n == 0 {
			return value.Value{Type: value.String, Str: []byte{}}
		}
		return value.Value{Type: value.String, Str: strconv.AppendInt(nil, n, 10)}
	case value.Bool:
		return value.Value{Type: value.Bool, Num: n & 1}
	case value.Location:
		return value.Value{Type: value.Location, Flt: float64(n) * 1.7, Lon: float64(n*n%360) - 180}
	case value.Decimal:
		return value.Value{Type: value.Decimal, Num: n, Scale: c.Scale}
	default:
		return value.Value{Type: c.Type, Num: n}
	}
}

// Every function's Fold equals its naive computation.
func TestFunctionsEqualNaiveOnes(t *testing.T) {
	for _, k := range All {
		spec := k.Spec()
		t.Run(spec.Name+spec.Method, func(t *testing.T) {
			way, ok := naive[spec.Name]
			if !ok {
				t.Fatal("there is no naive computation; add one to this file")
			}
			rapid.Check(t, func(t *rapid.T) {
				c := drawCall(t, spec)
				events := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Sample {
					s := Sample{Time: rapid.Int64Range(-500, 1000).Draw(t, "time"), Holds: rapid.Bool().Draw(t, "holds")}
					if c.Type != value.Null && rapid.IntRange(0, 4).Draw(t, "null") > 0 {
						s.Value = valueOf(c, rapid.Int64Range(-30, 30).Draw(t, "value"))
					}
					return s
				}), 0, 25).Draw(t, "events")
				slices.SortStableFunc(events, func(a, b Sample) int { return int(a.Time - b.Time) })
				values := slices.DeleteFunc(slices.Clone(events), func(s Sample) bool { return s.Value.IsNull() })
				at := int64(1000) + rapid.Int64Range(0, 1000).Draw(t, "later")
				r := k.Fold(c, at, slices.Clone(events))
				if got, want := written(r, spec, c.Members != nil), way(c, at, events, values); !same(got, want) {
					t.Fatalf("got %s, the naive computation gives %s", got, want)
				}
				found := len(values) > 0
				if spec.Types == nil {
					found = len(events) > 0
				}
				if r.Found != found || r.Value.Type != value.Null && r.Items != nil {
					t.Fatalf("%d values: found is %v, want %v: %+v", len(values), r.Found, found, r)
				}
			})
		})
	}
}
