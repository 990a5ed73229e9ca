package aggregate

import "github.com/weir-stream/weir/value"

// Incremental is a function whose value can be maintained while a window moves, so that not every
// row of a training set needs a fold over all events of its window.
type Incremental interface {
	Function
	// Running starts with an empty window.
	Running(Call) Running
}

// Running is the value of a moving window. At each step it equals the Fold of the events in the window.
type Running interface {
	// Add adds the last event of the window.
	Add(*Sample)
	// Remove removes the first event of the window, which is passed once more.
	Remove(*Sample)
	// Result sets the value of the window, and returns whether it is found and capped: all that the results of
	// these functions say.
	Result(*value.Value) (found, capped bool)
}
