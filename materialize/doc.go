// Package materialize makes training sets: it replays a file of events through
// the plan, the kinds and the merge code that answer questions in production,
// and writes for each event the features as of that event, itself included. A
// feature that is asked about members is asked about the event's own value, as
// of just before the event.
package materialize

import "fmt"

// LineError is what is wrong with a line of an input.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

// Error is file:line: message.
func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }

// Unwrap returns the error without its place.
func (e *LineError) Unwrap() error { return e.Err }

// Source is a file of events in the order in which they are replayed.
type Source interface {
	// Next returns the next event, a JSON object that holds until the call after,
	// and io.EOF behind the last. Other errors are a *LineError.
	Next() ([]byte, error)
	// At places an error about the event returned last.
	At(error) error
}
