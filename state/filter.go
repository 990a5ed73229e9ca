package state

// Filter distinguishes values that were met from values that were not.
type Filter interface {
	// Has says whether a value, given as text, was met. It is always true for one that was.
	Has(text []byte) bool
	// FalsePositiveRate bounds the probability that Has is true for a value that was not met.
	FalsePositiveRate() float64
}
