package source

import (
	"fmt"
	"io"
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// CellKind says what a cell of a table holds.
type CellKind uint8

// The kinds of cells.
const (
	Null    CellKind = iota
	Untyped          // text of which the file does not say what it is, as in a CSV
	String
	Number // a number as JSON writes it
	Bool   // true or false
	Time
)

// Cell is what a row of a table holds in a column.
type Cell struct {
	Kind CellKind
	Text []byte // of a Time in RFC 3339
	Ms   int64  // of a Time: milliseconds since 1970
}

// Table is a file of rows, each with the same columns.
type Table interface {
	// Columns are the names of the columns, no two the same.
	Columns() []string
	// Select says that only the cells of some columns will be looked at; the others
	// may be Null. Without it all are read.
	Select(columns []int)
	// Next reads the next row, a cell for each column; they hold until the call after.
	// io.EOF is behind the last row. Other errors are a *LineError.
	Next() ([]Cell, error)
	// Line is where the row read last stands, for At.
	Line() int
	// At places an error about the row at a line.
	At(line int, err error) error
}

// events are rows of a table as the events of a stream.
type events struct {
	Table
	root  *node
	value []byte
}

// EventsOf reads a table as events of a stream. A column's name is the path of a
// field, of the event's time, its id or a name in the stream's match; a location has
// two, with .lat and .lon behind its path. All of them must be there. Other columns
// are passed over.
//
// What a cell becomes is decided by the type of its field; null, and an empty cell of
// a CSV, are null:
//
//	string              the text as it stands, or a whole number
//	int, float, decimal a number as in JSON
//	bool                true and false, also with capital letters, or 1 and 0
//	timestamp           a number or text in the form of the unit, or a typed time
//
// The id, if it is no field, and the names in a match are strings in a CSV, and what
// they are in other files.
func EventsOf(t Table, stream *record.Stream) (Source, error) {
	root, err := newTree(stream, t.Columns())
	if err != nil {
		return nil, t.At(1, err)
	}
	t.Select(root.columns(nil))
	return &events{Table: t, root: root}, nil
}

func (e *events) Next(event *Event) error {
	cells, err := e.Table.Next()
	if err != nil {
		return err
	}
	e.value, err = e.root.append(e.value[:0], cells)
	if err != nil {
		return e.At(e.Line(), err)
	}
	*event = Event{Value: e.value, RecordTime: -1, Line: e.Line()}
	return nil
}

// twice is an error where a name stands in a list more than once.
func twice(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("column %q is there twice", name)
		}
	}
	return nil
}

// Rows reads the rows of a table as JSON objects of some fields, the form in which
// records are decoded.
type Rows struct {
	Table
	root  *node
	value []byte
}

// RowsOf reads fields out of a table: those of a stream, whose time is Instant.
func RowsOf(t Table, stream *record.Stream) (*Rows, error) {
	root, err := newTree(stream, t.Columns())
	if err != nil {
		return nil, t.At(1, err)
	}
	root.add(stream.Timestamp.Path).form = isInstant
	return &Rows{Table: t, root: root}, nil
}

// Next returns the next row's object and its cells, which hold until the call after.
func (r *Rows) Next() (value []byte, cells []Cell, err error) {
	if cells, err = r.Table.Next(); err != nil {
		return nil, nil, err
	}
	if r.value, err = r.root.append(r.value[:0], cells); err != nil {
		return nil, nil, r.At(r.Line(), err)
	}
	return r.value, cells, nil
}

var _ io.Closer = (*File)(nil)
