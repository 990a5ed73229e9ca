package state

import (
	"cmp"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Of more values than are kept of a tile, those are kept whose hashes are least: a
// sample by chance, the same whatever the order in which the values came. Samples of
// several tiles are one of all their values, as far as the least of their bounds
// (K. Beyer, P. J. Haas, B. Reinwald, Y. Sismanis, R. Gemulla, "On synopses for
// distinct-value estimation under multiset operations", 2007).

// SampleHash is the hash of a value, by its text, that decides whether it is kept.
// What is kept outlives a release: it must not change. It is not keyed with the
// namespace's secret, as the hashes of values that were seen are: the model and training
// sets take the same sample. Who makes up values of low hashes has numbers beyond `max`
// overestimated for the entities that he writes to; those answers are no exact ones, and
// no value is ever taken for another one by this hash.
func SampleHash(text []byte) uint64 { return xxhash.Sum64(text) }

// hashes is how many values SampleHash has.
const hashes = 1 << 64

// EstimateDistinct is the number of different values of which some were met, those
// whose hashes lie below a bound, 0 for all; and its relative standard error.
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

// LeastHashes are those n texts that a sample keeps; n of 0 is all. Their order may
// be another.
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
