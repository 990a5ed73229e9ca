package aggregate

// Incremental is a function whose value can be kept while a window moves on, so that
// it need not be folded from all events of the window for every row of a training set.
type Incremental interface {
	Function
	// Running begins with a window that holds nothing.
	Running(Call) Running
}

// Running is the value of a window that moves on. It says at each step what Fold says of
// the events that are in the window, whatever was in it before.
type Running interface {
	// Add takes in an event: the last of those in the window.
	Add(*Sample)
	// Remove takes back the first event of the window, which is given once more.
	Remove(*Sample)
	Result() Result
}
