package aggregate

// Form is what a parameter takes.
type Form uint8

// The forms.
const (
	Whole     Form = iota // a whole number from Least to Most
	Fraction              // a number from 0 to 1
	Span                  // a duration of a millisecond or more
	Edges                 // a list of rising values of the field
	Accuracy              // a number from 0.001 to 0.1
	Condition             // an expression over the stream's fields that is a bool
	Rate                  // a probability of errors, from a millionth to a half
)

// Parameter is what a function takes beside its field, under the same name in both
// forms of a definition.
type Parameter struct {
	Name        string
	Form        Form
	Default     string // as definitions write it; empty: it must be given
	Least, Most int    // of Whole; for Edges the number of them
}

// kParameter is how many values a list has at the most.
var kParameter = Parameter{Name: "k", Form: Whole, Least: 1, Most: 1000}

// condition is what an event must satisfy.
var condition = Parameter{Name: "condition", Form: Condition}
