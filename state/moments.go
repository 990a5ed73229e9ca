package state

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/weir-stream/weir/value"
)

// Moments are what variances are computed from. For ints and decimals, as integers at their scale, they are exact sums
// of the values and of their squares. Squares of floats do not add up exactly, so their moments are the mean and the sum
// of squared deviations from it. Those are merged by the formula of Chan, Golub and LeVeque ("Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances", 1979), which avoids the cancellation that a sum of squares has for
// large values close to each other. The order of merging affects only the last digits.
type Moments struct {
	N             int64
	Mean, Squares float64 // of floats
	Sum           value.IntSum
	SquareSum     value.SquareSum
}

// MomentsOf returns the moments of one value of a numeric type.
func MomentsOf(v *value.Value) Moments { return momentsOf(v.Type, number(Input{Value: v})) }

// MomentsOf returns the moments of the value of a mutation.
func (m *Mutation) MomentsOf() Moments { return momentsOf(m.Series.Type, m.Num) }

// momentsOf returns the moments of a value of a type; floats are given as their bits.
func momentsOf(t value.Type, num int64) Moments {
	m := Moments{N: 1}
	if t == value.Float {
		m.Mean = math.Float64frombits(uint64(num))
		return m
	}
	m.Sum.Add(num)
	m.SquareSum.Add(num)
	return m
}

// Add merges the moments of two sets of values.
func (m Moments) Add(o Moments) Moments {
	m.Sum.AddSum(o.Sum)
	m.SquareSum.AddSum(o.SquareSum)
	if m.N == 0 || o.N == 0 {
		m.N, m.Mean, m.Squares = m.N+o.N, m.Mean+o.Mean, m.Squares+o.Squares
		return m
	}
	n := m.N + o.N
	delta, share := o.Mean-m.Mean, float64(o.N)/float64(n)
	between := delta * delta * float64(m.N) * share
	if between == 0 && delta != 0 {
		between = math.SmallestNonzeroFloat64 // too small for a float: not as if all were equal, see SpreadError
	}
	m.Squares += o.Squares + between
	m.N, m.Mean = n, m.Mean+delta*share
	return m
}

// MeanOf returns the mean of values of a type and scale. There must be a value.
func (m *Moments) MeanOf(t value.Type, scale uint8) float64 {
	if t == value.Float {
		return m.Mean
	}
	sum := value.Value{Type: value.Decimal, Scale: scale}
	m.Sum.Set(&sum)
	return sum.Float64() / float64(m.N)
}

// Spread returns the sum of the squared deviations of values of a type and scale from their mean, divided by a number.
// Of ints and decimals it is the float nearest to the true one; of floats see SpreadError. There must be a value.
func (m *Moments) Spread(t value.Type, scale uint8, by int64) float64 {
	if t == value.Float {
		return m.Squares / float64(by)
	}
	sum, one := value.Value{Type: value.Int}, value.Value{Type: value.Int, Num: 1}
	m.Sum.Set(&sum)
	unit, _ := value.Rescale(&one, scale)
	if squares, ok := m.smallSquares(&sum); ok {
		// A product of numbers of at least 1 that stays below 2^53 has been exact all along.
		if divisor := float64(m.N) * float64(by) * float64(unit) * float64(unit); divisor <= 1<<53 {
			return float64(squares) / divisor
		}
	}
	s, n, units := sum.Big(), big.NewInt(m.N), big.NewInt(unit)
	squares := m.SquareSum.Big()
	squares.Mul(squares, n).Sub(squares, s.Mul(s, s))
	n.Mul(n, big.NewInt(by)).Mul(n, units).Mul(n, units)
	f, _ := new(big.Rat).SetFrac(squares, n).Float64()
	return f
}

// smallSquares returns N times the sum of squared deviations of integers; ok is false if a float may not hold it.
func (m *Moments) smallSquares(sum *value.Value) (squares uint64, ok bool) {
	if sum.Wide() || m.SquareSum[1]|m.SquareSum[2] != 0 {
		return 0, false
	}
	magnitude := uint64(max(sum.Num, -sum.Num))
	high, low := bits.Mul64(uint64(m.N), m.SquareSum[0])
	ofSum, lowOfSum := bits.Mul64(magnitude, magnitude)
	squares, borrow := bits.Sub64(low, lowOfSum, 0)
	return squares, high-ofSum-borrow == 0 && squares <= 1<<53
}

// SpreadError bounds the relative error of Spread: 0 for ints and decimals, and for floats that are all equal.
func (m *Moments) SpreadError(t value.Type) float64 {
	if t != value.Float || m.Squares == 0 {
		return 0
	}
	n := float64(m.N)
	condition := math.Hypot(1, math.Abs(m.Mean)*math.Sqrt(n)/math.Sqrt(m.Squares))
	return n * (0x1p-51*condition + 0x1p-1074/m.Squares)
}
