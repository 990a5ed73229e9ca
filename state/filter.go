package state

// Filter tells values that were added from others.
type Filter interface {
	// Has reports whether a value, given as text, was added. It is always true for an added value.
	Has(text []byte) bool
	// FalsePositiveRate bounds the probability that Has is true for a value that was not added.
	FalsePositiveRate() float64
}
