package aggregate

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/value"
)

func rational(s Sample) *big.Rat {
	if s.Value.Type == value.Float {
		return new(big.Rat).SetFloat64(s.Value.Flt)
	}
	r, _ := new(big.Rat).SetString(textOf(s.Value))
	return r
}

func less(a, b Sample) bool {
	if a.Value.Type.Numeric() || a.Value.Type == value.Timestamp {
		return rational(a).Cmp(rational(b)) < 0
	}
	return textOf(a.Value) < textOf(b.Value)
}

func totalOf(values []Sample) *big.Rat {
	sum := new(big.Rat)
	for _, v := range values {
		sum.Add(sum, rational(v))
	}
	return sum
}

// spread is the variance computed from the differences of all pairs.
func spread(values []Sample, less int, root bool) string {
	n := len(values)
	if n-less < 1 {
		return "null"
	}
	sum := new(big.Rat)
	for i, a := range values {
		for _, b := range values[i+1:] {
			d := new(big.Rat).Sub(rational(a), rational(b))
			sum.Add(sum, d.Mul(d, d))
		}
	}
	f, _ := sum.Quo(sum, big.NewRat(int64(n*(n-less)), 1)).Float64()
	if root {
		f = math.Sqrt(f)
	}
	return fmt.Sprint(f)
}

// groups groups equal values, in the order in which they first occur.
func groups(values []Sample) [][]Sample {
	var out [][]Sample
	for _, v := range values {
		i := slices.IndexFunc(out, func(g []Sample) bool { return !less(g[0], v) && !less(v, g[0]) })
		if i < 0 {
			out = append(out, []Sample{v})
		} else {
			out[i] = append(out[i], v)
		}
	}
	return out
}

// ranked repeatedly takes the greatest group.
func ranked(values []Sample) [][]Sample {
	var out [][]Sample
	for rest := groups(values); len(rest) > 0; {
		best := 0
		for i, g := range rest {
			if b := rest[best]; len(g) > len(b) || len(g) == len(b) && less(g[0], b[0]) {
				best = i
			}
		}
		out = append(out, rest[best])
		rest = slices.Delete(rest, best, best+1)
	}
	return out
}

// arc is the length of a great-circle arc, computed from the angle of two vectors.
func arc(a, b value.Value) float64 {
	vector := func(v value.Value) [3]float64 {
		lat, lon := v.Flt*math.Pi/180, v.Lon*math.Pi/180
		return [3]float64{math.Cos(lat) * math.Cos(lon), math.Cos(lat) * math.Sin(lon), math.Sin(lat)}
	}
	p, q := vector(a), vector(b)
	cross := math.Hypot(math.Hypot(p[1]*q[2]-p[2]*q[1], p[2]*q[0]-p[0]*q[2]), p[0]*q[1]-p[1]*q[0])
	return 6371.0088 * math.Atan2(cross, p[0]*q[0]+p[1]*q[1]+p[2]*q[2])
}

func all(values []Sample, is func(Sample) bool) bool {
	return !slices.ContainsFunc(values, func(v Sample) bool { return !is(v) })
}

// where is the first value that satisfies is.
func where(values []Sample, is func(Sample) bool) string {
	return at(values, slices.IndexFunc(values, is))
}

func at(values []Sample, i int) string {
	if i < 0 || i >= len(values) {
		return "null"
	}
	return textOf(values[i].Value)
}

func number(r *big.Rat) string {
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}

// memberships says for each member whether it is among the values.
func memberships(c Call, values []Sample) string {
	var texts []string
	for _, m := range c.Members {
		member := Sample{Value: m}
		absent := all(values, func(v Sample) bool { return less(v, member) || less(member, v) })
		texts = append(texts, strconv.FormatBool(!absent))
	}
	return listed(texts)
}

func listed(texts []string) string {
	if texts == nil {
		return "null"
	}
	return strings.Join(texts, " ")
}

func textOf(v value.Value) string {
	if v.IsNull() {
		return "null"
	}
	return string(v.AppendText(nil))
}
