package aggregate

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// ddsketch counts values in bins, each narrow enough for the relative error, by the logarithmic
// mapping of DDSketch (Masson, Rim and Lee, "DDSketch: A Fast and Fully-Mergeable Quantile Sketch
// with Relative-Error Guarantees", 2019). Bin i of positive values is (gamma^(i-1), gamma^i];
// negative values have bins of their own, and so has 0.
type ddsketch struct {
	gamma   float64
	integer bool
}

// newDDSketch makes a sketch that represents values of a type within a relative error.
func newDDSketch(t value.Type, relative float64) ddsketch {
	d := ddsketch{integer: t != value.Float}
	if d.integer {
		// Rounding to a whole number adds up to 1/2, which for every number that is not exact anyway is as much error
		// again.
		relative /= 2
	}
	d.gamma = (1 + relative) / (1 - relative)
	return d
}

// bin is one bin of a sketch.
type bin struct {
	sign  int // of its values; 0 is the bin of 0
	index int
}

// compare orders bins by their values.
func (b bin) compare(o bin) int {
	if b.sign != o.sign {
		return b.sign - o.sign
	}
	return b.sign * (b.index - o.index)
}

// appendKey appends the key of a value's bin.
func (d ddsketch) appendKey(dst []byte, v value.Value) []byte {
	x := v.Flt
	if d.integer {
		x = float64(v.Num)
	}
	if x == 0 {
		return dst // an empty key
	}
	index := int64(math.Ceil(value.Log(math.Abs(x)) / math.Log(d.gamma)))
	negative := int64(0)
	if x < 0 {
		negative = 1
	}
	return binary.AppendVarint(dst, index<<1|negative)
}

// binOf returns the bin with a key.
func binOf(key string) bin {
	n, width := binary.Varint([]byte(key))
	if width <= 0 {
		return bin{}
	}
	return bin{sign: 1 - 2*int(n&1), index: int(n >> 1)}
}

// value returns the value that represents a bin.
func (d ddsketch) value(c Call, b bin) value.Value {
	// Compute from the lower edge, which is finite even if the upper one is not, and from its root: on some machines
	// math.Exp is infinite from 1.27e308 on.
	root := math.Exp(float64(b.index-1) * math.Log(d.gamma) / 2)
	x := float64(b.sign) * root * (root * 2 * d.gamma / (1 + d.gamma))
	v := value.Value{Type: c.Type, Scale: c.Scale}
	switch {
	case !d.integer:
		v.Flt = max(-math.MaxFloat64, min(math.MaxFloat64, x))
	case x >= math.MaxInt64:
		v.Num = math.MaxInt64
	case x <= math.MinInt64:
		v.Num = math.MinInt64
	default:
		v.Num = int64(math.Round(x))
	}
	return v
}

// quantile returns the bin of the least value such that a share of all values is not greater.
func (d ddsketch) quantile(share float64, groups []state.Group) bin {
	type counted struct {
		bin
		n int64
	}
	var bins []counted
	all := int64(0)
	for _, g := range groups {
		n := total(g.Buckets)
		bins = append(bins, counted{binOf(g.Key), n})
		all += n
	}
	slices.SortFunc(bins, func(a, b counted) int { return a.compare(b.bin) })
	sum := int64(0)
	for _, b := range bins[:len(bins)-1] {
		if sum += b.n; float64(sum)/float64(all) >= share {
			return b.bin
		}
	}
	return bins[len(bins)-1].bin
}
