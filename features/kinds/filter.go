package kinds

import "github.com/cespare/xxhash/v2"

// Filter tells values that were met from those that were not.
type Filter interface {
	// Has says whether a value, by its text, was met. It is true for each that was.
	Has(text []byte) bool
	// FalsePositiveRate is the probability at the most with which Has is true for
	// a value that was not met.
	FalsePositiveRate() float64
}

// MemberHash is the hash by which filters know a value, by its text.
func MemberHash(text []byte) uint64 { return xxhash.Sum64(text) }
