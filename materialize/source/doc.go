// Package source reads files of history: events as their topic would have had
// them, and tables of rows. A file is a CSV, lines of JSON or Parquet, the first
// two also compressed with gzip or zstd.
package source

import "fmt"

// Event is one event of a file.
type Event struct {
	// Topic is that of its record, where the line is an envelope; else empty.
	Topic string
	// Value is the record's, a JSON object. It holds until the next one is read.
	Value []byte
	// RecordTime is when its record was written, in milliseconds since 1970, as an
	// envelope says it; -1 where none does.
	RecordTime int64
	// Line is where it stands, for At.
	Line int
}

// Source is the events of a file, in its order.
type Source interface {
	// Next reads the next event; io.EOF is behind the last. Other errors are a
	// *LineError.
	Next(*Event) error
	// At places an error about the event at a line.
	At(line int, err error) error
}

// LineError is what is wrong with a line or a row of a file.
type LineError struct {
	File string
	Line int // from 1
	// Row says that the file has no lines: Line is the number of a row.
	Row bool
	Err error
}

// Error is file:line: message, or file: row n: message.
func (e *LineError) Error() string {
	if e.Row {
		return fmt.Sprintf("%s: row %d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the error without its place.
func (e *LineError) Unwrap() error { return e.Err }
