package state

import "math"

// maxBloomHashes is the number of hashes from which a Bloom filter is hardly smaller than the 64-bit hashes of its
// values.
const maxBloomHashes = 40

// BloomSize returns the size, in bytes, of a Bloom filter that holds n values at a rate of false positives, and the
// number of bits that each value sets (B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors",
// 1970). If the bits of a value are chosen at random, a value that was not added is found with the probability (bits
// set / bits) ^ hashes. That is exact, because the bits are counted and not estimated from n. The size is least with
// about half of the bits set: 1.44 log2(1/rate) bits a value. The size is 0 if the hashes themselves would take hardly
// more.
func BloomSize(n int, rate float64) (size, hashes int) {
	k := max(1, math.Round(-math.Log2(rate)))
	if n < 1 || k > maxBloomHashes {
		return 0, 0
	}
	// n values set n*k random bits, and leave 1-fill = e^(-n*k/bits) of them unset.
	fill := math.Pow(rate, 1/k)
	bits := float64(n) * k / -math.Log1p(-fill)
	return int(math.Ceil(bits / 8)), int(k)
}
