package state

// Filter tells values that were added from others.
type Filter interface {
	// Has reports whether a value, given as text, was added. It is always true for an added value.
	Has(text []byte) bool
	// Full reports whether values were not added because there was no room: of one that it has not, it is then unknown
	// whether it was met.
	Full() bool
	// FalsePositiveRate bounds the probability that Has is true for a value that was not added.
	FalsePositiveRate() float64
}
