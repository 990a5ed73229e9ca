package state

// Filter tells values that were met from those that were not.
type Filter interface {
	// Has says whether a value, by its text, was met. It is true for each that was.
	Has(text []byte) bool
	// FalsePositiveRate is the probability at the most with which Has is true for
	// a value that was not met.
	FalsePositiveRate() float64
}
