package state

import "math"

// mostBloomHashes is where a Bloom filter stops to be much smaller than the
// 64-bit hashes of its values.
const mostBloomHashes = 40

// BloomSize is the size in bytes of a Bloom filter that takes n values until it
// has a rate of false positives, and the number of bits that each value sets
// (B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors",
// 1970). Where all the bits of a value are chosen by chance, a value that was
// never met is found with the probability (bits set / bits) ^ hashes: that is
// exact, for the bits are counted and not estimated from n. With about half of
// the bits set it is the least size, of 1.44 log2(1/rate) bits a value.
// The size is 0 where the hashes themselves would hardly take more.
func BloomSize(n int, rate float64) (size, hashes int) {
	k := max(1, math.Round(-math.Log2(rate)))
	if n < 1 || k > mostBloomHashes {
		return 0, 0
	}
	// n values set n*k bits by chance, and so leave 1-fill = e^(-n*k/bits) unset.
	fill := math.Pow(rate, 1/k)
	bits := float64(n) * k / -math.Log1p(-fill)
	return int(math.Ceil(bits / 8)), int(k)
}
