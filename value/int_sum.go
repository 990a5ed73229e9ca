package value

import "math/bits"

// IntSum is a sum of 64-bit ints that also supports subtraction. With fewer than 2^63 summands it
// fits into its 128 bits. The zero IntSum is 0.
type IntSum struct {
	high int64
	low  uint64
}

// Add adds an int.
func (s *IntSum) Add(n int64) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, uint64(n), 0)
	s.high += n>>63 + int64(carry)
}

// AddSum adds another sum.
func (s *IntSum) AddSum(o IntSum) {
	var carry uint64
	s.low, carry = bits.Add64(s.low, o.low, 0)
	s.high += o.high + int64(carry)
}

// Sub subtracts an int.
func (s *IntSum) Sub(n int64) {
	var borrow uint64
	s.low, borrow = bits.Sub64(s.low, uint64(n), 0)
	s.high -= n>>63 + int64(borrow)
}

// Set sets the number of an Int or a Decimal to the sum.
func (s *IntSum) Set(v *Value) {
	sum := sumOf(s.high, s.low)
	v.Num, v.Carry = sum.Num, sum.Carry
}

// IntSumOf returns the number of an Int or a Decimal, without its scale, as a sum.
func IntSumOf(v Value) IntSum {
	high, low := v.words()
	return IntSum{high: high, low: low}
}
