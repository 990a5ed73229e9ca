package state

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// If a tile has more values than it keeps, those with the least hashes are kept: a random sample
// that does not depend on the order in which values came. Samples of several tiles form one of all
// their values, up to the least of their bounds (K. Beyer, P. J. Haas, B. Reinwald, Y. Sismanis, R.
// Gemulla, "On synopses for distinct-value estimation under multiset operations", 2007).

// SampleHash is the hash of a value's text that decides whether it is kept. It must not change,
// because state outlives a release. It is not keyed with the namespace's secret, as the hashes of
// values seen are, because the model and training sets take the same sample. An attacker who
// chooses values with low hashes can make numbers beyond `max` overestimates for the entities that
// he writes to; those answers are estimates anyway, and no value is ever mistaken for another by
// this hash.
func SampleHash(text []byte) uint64 { return xxhash.Sum64(text) }

// hashes is the number of values of SampleHash.
const hashes = 1 << 64

// EstimateDistinct estimates the number of distinct values from the members whose hashes lie below
// a bound, 0 for all; it also returns the relative standard error.
func EstimateDistinct(members []string, bound uint64) (n int64, relative float64) {
	if bound == 0 {
		return int64(len(members)), 0
	}
	below := 0
	for _, text := range members {
		if SampleHash([]byte(text)) < bound {
			below++
		}
	}
	share := float64(bound) / hashes
	return int64(math.Round(float64(below) / share)), math.Sqrt((1 - share) / float64(max(1, below-1)))
}

// LeastHashes are the n texts that a sample keeps; n of 0 means all. It may reorder texts.
func LeastHashes(texts []string, n int) []string {
	if n == 0 || len(texts) <= n {
		return texts
	}
	type hashed struct {
		hash uint64
		text string
	}
	list := make([]hashed, len(texts))
	for i, text := range texts {
		list[i] = hashed{SampleHash([]byte(text)), text}
	}
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.text, b.text)) })
	least := make([]string, n)
	for i := range least {
		least[i] = list[i].text
	}
	return least
}
