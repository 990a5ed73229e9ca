package state

import (
	"cmp"
	"math"
	"slices"
)

// If a tile has more values than it keeps, those with the least hashes are kept: a random sample that does not depend
// on the order in which values came. Samples of several tiles together are a sample of all their values, up to the
// least of their bounds (K. Beyer, P. J. Haas, B. Reinwald, Y. Sismanis, R. Gemulla, "On synopses for distinct-value
// estimation under multiset operations", 2007).

// possibleHashes is the number of values of a hash.
const possibleHashes = 1 << 64

// EstimateDistinct estimates the number of distinct values from Members and Bound; it also returns the relative standard
// error.
func (s *WindowState) EstimateDistinct() (n int64, relative float64) {
	members, bound := s.Members, s.Bound
	if bound == 0 {
		return int64(len(members)), 0
	}
	below := 0
	for _, text := range members {
		if s.Secret.HashString(text) < bound {
			below++
		}
	}
	share := float64(bound) / possibleHashes
	return int64(math.Round(float64(below) / share)), math.Sqrt((1 - share) / float64(max(1, below-1)))
}

// LeastHashes returns the n texts with the least hashes, which a sample keeps; all for an n of 0. It may reorder texts.
func (k Secret) LeastHashes(texts []string, n int) []string {
	if n == 0 || len(texts) <= n {
		return texts
	}
	type hashed struct {
		hash uint64
		text string
	}
	list := make([]hashed, len(texts))
	for i, text := range texts {
		list[i] = hashed{k.HashString(text), text}
	}
	slices.SortFunc(list, func(a, b hashed) int { return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.text, b.text)) })
	least := make([]string, n)
	for i := range least {
		least[i] = list[i].text
	}
	return least
}
