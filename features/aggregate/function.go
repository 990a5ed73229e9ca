// Package aggregate holds the aggregation functions, one file each.
//
// A function says what its value is, as a plain fold over the events in a window:
// exact windows are answered so, from the entity's log. A function whose value can be
// computed from tiles too says which series it needs and how it merges what they hold
// in a window; tests compare the merge with the fold. A function that is not Mergeable
// is answered from the log, whatever its window.
// To add a function, write its file and name it in All.
package aggregate

import (
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Call is the use of a function by one feature.
type Call struct {
	Type  value.Type // of the field; Null where the function takes none
	Scale uint8      // of the field, for Decimal
	Max   int        // the greatest number of values or categories, for what caps them

	// What the parameters of the function were given; see Spec.Parameters.
	N        int           // k or n
	P        float64       // p
	Duration int64         // half_life or unit, in milliseconds
	Bins     []value.Value // bins: rising, of the field's type
	Error    float64       // error

	// Members are the values that a question names, of the field's type, to a
	// function that has a Membership. Its result has an item for each then, in their
	// order: a Bool that says whether it was met.
	Members []value.Value
}

// Function is one aggregation function.
type Function interface {
	Spec() Spec
	// Fold computes the value from the events in the window, in the order of
	// their times, those of one time in the order in which they came. At is the
	// moment for which it is asked, in milliseconds; no event is later.
	Fold(c Call, at int64, events []Sample) Result
}

// Mergeable is a function that can be had from tiles.
type Mergeable interface {
	Function
	// Measures lists the series that the function needs, in the order in which
	// Merge gets their slices.
	Measures(Call) []state.Measure
	// Merge computes the value from what the series hold in the window.
	// At is the moment asked for; events may be later, up to the end of the tile
	// that holds it.
	Merge(c Call, at int64, s []state.WindowState) Result
}

// Totalled is a function to which one tile with what all tiles of the window hold together
// is as good as these are.
type Totalled interface {
	Mergeable
	fromTotals()
}

// Keyed is a function that counts events by what its field's values fall under.
type Keyed interface {
	Mergeable
	Keys(Call) Keys
}

// Keys are how values are put together under keys.
type Keys struct {
	// Name is part of a series' identity; empty: keys are the values' texts.
	Name string
	// Append appends the key of a value; nil where keys are texts.
	Append func(dst []byte, v value.Value) []byte
}

// Spec describes a function to the loader of definitions and to the reader of the
// documentation.
type Spec struct {
	Name   string // in definitions, lower case
	Method string // of count_distinct; empty for functions without methods
	Title  string // what it answers, half a sentence
	Note   string // what else its user must know, in sentences; may be empty
	// Example is a use of it over the streams of the documentation.
	Example string
	Types   []value.Type // accepted for the field; nil: the function takes no field
	// LogTypes are those of the Types for which the function is answered from the
	// log, although it is Tiled.
	LogTypes []value.Type
	Result   value.Type // of the value, or of the values in it; Null: that of the field
	// Span says that of a field of moments the value is a time between them, an
	// Int in milliseconds.
	Span  bool
	Shape Shape // of the value
	// Through says that the value can be had of several entities together, as of
	// one that has all their events; see Unite.
	Through bool
	// FieldLast says that the field is the last positional argument of the
	// one-line form, behind the by-fields, and not the first.
	FieldLast bool
	Exact     bool // the value has no error of its own
	// StandardError is the relative standard error of functions that estimate.
	StandardError float64
	// Neutral is the value for an entity without events.
	Neutral value.Value
	// DefaultMax is the default of Call.Max; 0 where the function has no cap.
	DefaultMax int
	// TilesAreUnits says that tiles are as wide as the parameter unit says.
	TilesAreUnits bool
	Parameters    []Parameter
	Members       Membership // whether a question may name values of the field
}

// ResultOf is the type of the value, or of the values in it, over a field of a
// type.
func (s Spec) ResultOf(field value.Type) value.Type {
	switch {
	case s.Result != value.Null:
		return s.Result
	case s.Span && field == value.Timestamp:
		return value.Int
	default:
		return field
	}
}

// Sample is one event as a fold sees it: its time in milliseconds, the value of
// the function's field, null where absent, and whether the condition holds for it,
// for the functions with the parameter condition.
type Sample struct {
	Time  int64
	Value value.Value
	Holds bool
	// Category is, for a feature with one value for each, that of the event.
	Category value.Value
}

// Result is the value of a feature.
type Result struct {
	Value value.Value
	// Items are the value where it has a shape, which leaves Value null; nil for
	// none.
	Items []Item
	// Found says that the window holds something. Where it does not, Value is
	// the neutral value.
	Found bool
	// Uncertain is how much greater than stated the value may be, 0 where it is
	// exact or an estimate with a StandardError.
	Uncertain int64
	// RelativeError is how far the value may lie off, as a share of it; 0 where it
	// is exact or an estimate with a StandardError.
	RelativeError float64
	// StandardError is the relative standard error of a value that is an estimate
	// here, though those of its function mostly are none; see Spec.StandardError.
	StandardError float64
	Capped        bool // a cap was reached: the value may be too small
	// FalsePositiveRate is the probability at the most with which a member that
	// was not met is said to have been; one that was is never missed.
	FalsePositiveRate float64
}
