package aggregate

// ParameterType is what a parameter takes.
type ParameterType uint8

// The types of parameters.
const (
	Whole     ParameterType = iota // a whole number from Min to Max
	Fraction                       // a number from 0 to 1
	Span                           // a duration of a millisecond or more
	Edges                          // a list of ascending values of the field
	Accuracy                       // a number from 0.001 to 0.1
	Condition                      // an expression over the stream's fields that is a bool
	Rate                           // a probability of errors, from a millionth to a half
	Choice                         // one of Choices
)

// Parameter is a parameter of a function besides its field. It has the same name in both forms of a
// definition.
type Parameter struct {
	Name     string
	Type     ParameterType
	Default  string // as definitions write it; empty if the parameter is required
	Min, Max int    // of Whole; for Edges the number of them
	Choices  []string
}

// kParameter is the greatest length of a list.
var kParameter = Parameter{Name: "k", Type: Whole, Min: 1, Max: 1000}

// condition is an expression that events must satisfy.
var condition = Parameter{Name: "condition", Type: Condition}
