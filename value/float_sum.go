package value

import (
	"math"
	"math/bits"
)

// FloatSum is an exact sum of floats that also supports subtraction: an integer multiple of the
// least float, 2^-1074, in two's complement. It stores only the words between its lowest and its
// highest bit, three for amounts of money. The zero FloatSum is 0.
type FloatSum struct {
	first int // number of zero words before those held
	words []uint64
}

const wordBits = 64

// Add adds a finite float.
func (s *FloatSum) Add(f float64) { s.add(f, f < 0) }

// Sub subtracts a finite float.
func (s *FloatSum) Sub(f float64) { s.add(f, f >= 0) }

// add adds a float's magnitude, or subtracts it.
func (s *FloatSum) add(f float64, minus bool) {
	const fraction = 52
	pattern := math.Float64bits(f)
	mantissa, exponent := pattern&(1<<fraction-1), int(pattern>>fraction&0x7ff)
	if exponent > 0 {
		mantissa |= 1 << fraction
		exponent--
	}
	word, shift := exponent/wordBits, exponent%wordBits
	s.hold(word)
	words := s.words[word-s.first:]
	low, high, carry := mantissa<<shift, mantissa>>(wordBits-shift), uint64(0)
	if minus {
		words[0], carry = bits.Sub64(words[0], low, 0)
		words[1], carry = bits.Sub64(words[1], high, carry)
		for i := 2; carry > 0 && i < len(words); i++ {
			words[i], carry = bits.Sub64(words[i], 0, carry)
		}
		return
	}
	words[0], carry = bits.Add64(words[0], low, 0)
	words[1], carry = bits.Add64(words[1], high, carry)
	for i := 2; carry > 0 && i < len(words); i++ {
		words[i], carry = bits.Add64(words[i], 0, carry)
	}
}

// hold grows the sum to have two words and one above them: no sum of fewer than 2^63 floats carries beyond it.
func (s *FloatSum) hold(word int) {
	if s.words == nil {
		s.first, s.words = word, make([]uint64, 3)
		return
	}
	if below := s.first - word; below > 0 {
		s.first, s.words = word, append(make([]uint64, below, below+len(s.words)), s.words...)
	}
	for sign := uint64(int64(s.words[len(s.words)-1]) >> 63); word+3 > s.first+len(s.words); {
		s.words = append(s.words, sign)
	}
}

// Float returns the nearest float, ties to even; infinite if the sum is beyond all floats.
func (s *FloatSum) Float() float64 {
	n := len(s.words)
	if n == 0 {
		return 0
	}
	minus := int64(s.words[n-1]) < 0
	word := func(i int) uint64 { return s.words[i] }
	if minus {
		lowest := 0
		for s.words[lowest] == 0 {
			lowest++
		}
		word = func(i int) uint64 {
			if i > lowest {
				return ^s.words[i]
			}
			return -s.words[i]
		}
	}
	top := n - 1
	for top >= 0 && word(top) == 0 {
		top--
	}
	if top < 0 {
		return 0
	}
	zeros := bits.LeadingZeros64(word(top))
	leading := word(top) << zeros
	if top > 0 {
		leading |= word(top-1) >> (wordBits - zeros)
		if s.anyBelow(top-1, wordBits-zeros) {
			leading |= 1 // used only for rounding: floats have 53 bits
		}
	}
	f := scaled(float64(leading), wordBits*(s.first+top)-zeros-1074)
	if minus {
		return -f
	}
	return f
}

// anyBelow reports whether any bit below one of a word is set. It is the same for a number and its negative.
func (s *FloatSum) anyBelow(word, bit int) bool {
	if s.words[word]<<(wordBits-bit) != 0 {
		return true
	}
	for _, w := range s.words[:word] {
		if w != 0 {
			return true
		}
	}
	return false
}

// scaled is f·2^exponent, several times faster than math.Ldexp.
func scaled(f float64, exponent int) float64 {
	if exponent < -1022 || exponent > 1023 {
		return math.Ldexp(f, exponent)
	}
	return f * math.Float64frombits(uint64(exponent+1023)<<52)
}
