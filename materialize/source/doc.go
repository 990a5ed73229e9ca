// Package source reads files of history: events in the form of their topic, and tables of rows. A file is CSV, JSON
// lines, Avro or Parquet; the first two may be compressed with gzip or zstd.
package source

import (
	"fmt"

	"github.com/weir-stream/weir/features/record"
)

// Event is one event of a file.
type Event struct {
	// Topic is the topic in the event's envelope; empty if it has none.
	Topic string
	// Key is the key of the record in the event's envelope, in JSON; empty if it has none.
	Key []byte
	// Value is the value of the record, in JSON. It is valid until the next event is read. Rows of a table have none.
	Value []byte
	// RecordTime is the record time in the event's envelope, in milliseconds since 1970; record.NoTime
	// if it has none.
	RecordTime int64
	// Line is the event's line, for At.
	Line int
}

// Source reads the events of a file in order.
type Source interface {
	// NewDecoder makes a decoder of the events that are read from then on, each until the next one is read.
	NewDecoder([]*record.Stream) *record.Decoder
	// Next reads the next event. It returns io.EOF after the last; other errors are a *lineError.
	Next(*Event) error
	Places
}

// Places adds a line to an error about an event.
type Places interface {
	At(line int, err error) error
}

// PlacesOf returns the places of a source that has been read, without its memory.
func PlacesOf(s Source) Places {
	switch s := s.(type) {
	case *jsonEvents:
		return place{file: s.file}
	case *csvEvents:
		return place{file: s.table.file}
	case *events:
		switch t := s.Table.(type) {
		case *parquetTable:
			return place{t.file, true}
		case *avroTable:
			return place{t.file, true}
		}
	}
	return s
}

// place is a file, with rows or with lines.
type place struct {
	file string
	rows bool
}

func (p place) At(line int, err error) error {
	return &lineError{File: p.file, Line: line, Row: p.rows, Err: err}
}

// lineError is an error about a line or a row of a file.
type lineError struct {
	File string
	Line int // from 1
	// Row means that the file has no lines, and that Line is the number of a row.
	Row bool
	Err error
}

// Error is file:line: message, or file: row n: message.
func (e *lineError) Error() string {
	if e.Row {
		return fmt.Sprintf("%s: row %d: %v", e.File, e.Line, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err)
}

// Unwrap returns the error without its location.
func (e *lineError) Unwrap() error { return e.Err }
