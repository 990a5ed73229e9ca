package value

import (
	"math/big"
	"math/bits"
)

// SquareSum is a sum of the squares of 64-bit ints, least significant word first. With fewer than 2^64 summands it fits
// into its 192 bits. The zero SquareSum is 0.
type SquareSum [3]uint64

// Add adds the square of an int.
func (s *SquareSum) Add(n int64) {
	magnitude := uint64(n)
	if n < 0 {
		magnitude = -magnitude
	}
	high, low := bits.Mul64(magnitude, magnitude)
	s.AddSum(SquareSum{low, high})
}

// AddSum adds another sum.
func (s *SquareSum) AddSum(o SquareSum) {
	var carry uint64
	for i := range s {
		s[i], carry = bits.Add64(s[i], o[i], carry)
	}
}

// Big returns the sum.
func (s *SquareSum) Big() *big.Int {
	n := new(big.Int)
	for i := len(s) - 1; i >= 0; i-- {
		n.Lsh(n, wordBits).Or(n, new(big.Int).SetUint64(s[i]))
	}
	return n
}
