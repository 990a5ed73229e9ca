// Package aggregate holds the aggregation functions, one file each.
//
// A function is defined by a plain fold over the events in a window. Exact windows are answered with the fold, from the
// entity's log. A function whose value can also be computed from tiles (Mergeable) lists the series that it needs and
// merges their buckets; tests compare the merge with the fold. All other functions are answered from the log, with any
// window.
//
// To add a function, write its file and name it in All.
package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Call is one feature's use of a function.
type Call struct {
	Type  value.Type // of the field; Null where the function takes none
	Scale uint8      // of the field, for Decimal
	Max   int        // the greatest number of values or categories, where these are capped

	// The parameters of the function; see Spec.Parameters.
	N        int           // k, n, or the index of a choice
	P        float64       // p
	Duration int64         // half_life or unit, in milliseconds
	Bins     []value.Value // bins: rising, of the field's type
	Error    float64       // error

	// Members are the values that a question names, of the field's type; only for functions with a Membership. The
	// result then has one item for each, in order: a Bool that is true if the window has the value.
	Members []value.Value
	// Secret chooses for Fold, by hashes, which of more than Max values a list has.
	Secret state.Secret
}

// Function is one aggregation function.
type Function interface {
	Spec() Spec
	// Fold computes the value from the events in the window, ordered by time, and by arrival within
	// one time. At is the moment of the question, in milliseconds; no event is later.
	Fold(c Call, at int64, events []Sample) Result
}

// Mergeable is a function that can be computed from tiles.
type Mergeable interface {
	Function
	// Measures lists the series that the function needs, in the order in which Merge receives their
	// window states.
	Measures(Call) []state.Measure
	// Merge computes the value from the window states of the series. At is the moment of the question; events may be
	// later, up to the end of the tile that contains it.
	Merge(c Call, at int64, s []state.WindowState) Result
}

// Totalled is a function that needs only the total of the window's tiles.
type Totalled interface {
	Mergeable
	fromTotals()
}

// Latest is a function whose value depends on the latest events of the window only.
type Latest interface {
	Function
	// Settled reports whether events before these, the last ones of the window, cannot change the value.
	Settled(c Call, events []Sample) bool
}

// Keyed is a function that counts events by keys made from its field's values.
type Keyed interface {
	Mergeable
	Keys(Call) Keys
}

// Keys describes how values are grouped under keys.
type Keys struct {
	// Name is part of a series' identity; empty if the values' texts are the keys.
	Name string
	// Append appends the key of a value; nil if the values' texts are the keys.
	Append func(dst []byte, v value.Value) []byte
}

// Spec describes a function to the definitions loader and to readers of the documentation.
type Spec struct {
	Name   string // in definitions, lower case
	Method string // of count_distinct; empty for functions without methods
	Title  string // what it answers, as a phrase
	Note   string // what else its user must know, in sentences; may be empty
	// Example is a use of it over the streams of the documentation.
	Example string
	Types   []value.Type // accepted for the field; nil: the function takes no field
	// LogTypes are those of Types for which the function is answered from the log, although it is
	// Mergeable.
	LogTypes []value.Type
	Result   value.Type // of the value, or of the values in it; Null: that of the field
	// Span means that the value for a field of timestamps is a duration, an Int in milliseconds.
	Span  bool
	Shape Shape // of the value
	// MultiHop means that the value can be computed over several entities, as if they were one with the events of all;
	// see Unite.
	MultiHop bool
	// FieldLast means that in the one-line form the field is the last positional argument, after the by-fields, and not
	// the first.
	FieldLast bool
	Exact     bool // the value has no error of its own
	// StandardError is the relative standard error, for functions that estimate.
	StandardError float64
	// Neutral is the value for an entity without events.
	Neutral value.Value
	// DefaultMax is the default of Call.Max; 0 if the function has no cap.
	DefaultMax int
	// TilesAreUnits means that the parameter unit sets the width of the tiles.
	TilesAreUnits bool
	Parameters    []Parameter
	Members       Membership // whether a question may name values of the field
}

// ResultOf returns the type of the value, or of the values in it, for a field of the given type.
func (s *Spec) ResultOf(field value.Type) value.Type {
	switch {
	case s.Result != value.Null:
		return s.Result
	case s.Span && field == value.Timestamp:
		return value.Int
	default:
		return field
	}
}

// Sample is one event of a fold: its time in milliseconds, the value of the function's field (null if absent), and, for
// functions with the parameter condition, whether the condition is true.
type Sample struct {
	Time  int64
	Value value.Value
	Holds bool
	// Category is the event's category, for a feature that answers for each category.
	Category value.Value
}

// Result is the value of a feature.
type Result struct {
	Value value.Value
	// Items hold a value that has a shape, and leave Value null; nil if there is none.
	Items []Item
	// Found is true if the window holds something. Otherwise Value is the neutral value.
	Found bool
	// Uncertain is by how much the true value may exceed the stated one; 0 if it is exact or an
	// estimate with a StandardError.
	Uncertain int64
	// RelativeError bounds the value's relative error; 0 if it is exact or an estimate with a
	// StandardError.
	RelativeError float64
	// StandardError is the relative standard error, if this value is an estimate although most
	// values of the function are not; see Spec.StandardError.
	StandardError float64
	Capped        bool // a cap was reached: the value may be too small
	// FalsePositiveRate bounds the probability that a member is found that was not in the window. One that was is never
	// missed.
	FalsePositiveRate float64
}
