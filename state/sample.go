package state

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// If a tile has more values than it keeps, those with the least hashes are kept: a random sample that does not depend
// on the order in which values came. Samples of several tiles together are a sample of all their values, up to the
// least of their bounds (K. Beyer, P. J. Haas, B. Reinwald, Y. Sismanis, R. Gemulla, "On synopses for distinct-value
// estimation under multiset operations", 2007).

// SampleHash returns the hash of a value's text that decides whether it is kept. It must not change, because state
// outlives a release. Unlike the hashes of Filters, it is not keyed with the namespace's secret, because the model and
// training sets take the same sample. An attacker who chooses values with low hashes can inflate counts beyond `max`
// for the entities of his events. Those counts are estimates anyway, and this hash never makes one value pass for
// another.
func SampleHash(text []byte) uint64 { return xxhash.Sum64(text) }

// possibleHashes is the number of values of a hash.
const possibleHashes = 1 << 64

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
	share := float64(bound) / possibleHashes
	return int64(math.Round(float64(below) / share)), math.Sqrt((1 - share) / float64(max(1, below-1)))
}

// LeastHashes returns the n texts with the least hashes, which a sample keeps; all for an n of 0. It may reorder texts.
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
