package value

import (
	"math"
	"math/bits"
	"slices"
)

// FloatSum is an exact sum of floats that also supports subtraction: an integer multiple of the
// least float, 2^-1074, in two's complement. It stores only the words between its lowest and its
// highest bit. The zero FloatSum is 0.
type FloatSum struct {
	first int // number of zero words before those held
	// few is enough for amounts of money. Words behind a pointer would cost a replay one more cache miss.
	few  [4]uint64
	many *[]uint64 // instead of few, if more are needed
}

// words returns the words held.
func (s *FloatSum) words() []uint64 {
	if s.many != nil {
		return *s.many
	}
	return s.few[:]
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
	words := s.hold(word)
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

// hold returns the words from one on, at least it, the next and one above them: no sum of fewer than 2^63 floats carries
// beyond that.
func (s *FloatSum) hold(word int) []uint64 {
	const least = 3
	words := s.words()
	if word < s.first || word+least > s.first+len(words) {
		s.extend(word, word+least)
		words = s.words()
	}
	return words[word-s.first:]
}

// extend makes the sum hold the words from one on, before another, as well as those of its value.
func (s *FloatSum) extend(from, to int) {
	held, first := slices.Clone(s.words()), s.first
	sign := uint64(int64(held[len(held)-1]) >> 63)
	for len(held) > 1 && held[len(held)-2] == sign { // the last one stays, for what is carried
		held = held[:len(held)-1]
	}
	if len(held) == 1 && sign == 0 {
		first = from // any will do for 0
	}
	s.first, to = min(first, from), max(first+len(held), to)
	words := s.few[:]
	if s.many = nil; to-s.first > len(words) {
		words = make([]uint64, to-s.first)
		s.many = &words
	}
	clear(words[:first-s.first])
	for i := first - s.first + copy(words[first-s.first:], held); i < len(words); i++ {
		words[i] = sign
	}
}

// Float returns the nearest float, ties to even; infinite if the sum is beyond all floats.
func (s *FloatSum) Float() float64 {
	words := s.words()
	n := len(words)
	minus := int64(words[n-1]) < 0
	word := func(i int) uint64 { return words[i] }
	if minus {
		lowest := 0
		for words[lowest] == 0 {
			lowest++
		}
		word = func(i int) uint64 {
			if i > lowest {
				return ^words[i]
			}
			return -words[i]
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
		if anyBelow(words, top-1, wordBits-zeros) {
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
func anyBelow(words []uint64, word, bit int) bool {
	if words[word]<<(wordBits-bit) != 0 {
		return true
	}
	for _, w := range words[:word] {
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
