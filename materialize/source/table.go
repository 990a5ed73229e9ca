package source

import (
	"fmt"
	"io"
	"slices"

	"github.com/weir-stream/weir/features/record"
)

// CellType says what a cell of a table holds.
type CellType uint8

// The types of cells.
const (
	Null    CellType = iota
	Untyped          // text whose type the file does not say, as in a CSV
	String
	Number // a number as JSON writes it
	Bool   // true or false
	Time
)

// Cell is the value of a row in one column.
type Cell struct {
	Type CellType
	Text []byte // of a Time in RFC 3339
	Ms   int64  // of a Time: milliseconds since 1970
}

// Table is a file of rows, each with the same columns.
type Table interface {
	// Columns returns the names of the columns, all different.
	Columns() []string
	// Select says that only some columns are needed; the cells of the others may be Null. Without
	// it all columns are read.
	Select(columns []int)
	// Next reads the next row, with one cell per column, valid until the next call. It returns
	// io.EOF after the last row; other errors are a *lineError.
	Next() ([]Cell, error)
	// Line returns the line of the row that was read last, for At.
	Line() int
	// At adds a line to an error about the row.
	At(line int, err error) error
}

// events reads the rows of a table as events of a stream.
type events struct {
	Table
	root  *node
	value []byte
}

// EventsOf reads a table as events of a stream. A column is named after the path of a field, of the
// event's time or id, or of a name in the stream's match. A location has two columns, whose names
// are its path followed by .lat and .lon. All of these must exist; other columns are skipped.
//
// The type of the field decides what its cells must hold. Null, and an empty cell of a CSV, are
// null:
//
//	string              the text as it is, or a whole number
//	int, float, decimal a number as in JSON
//	bool                true and false, also with capital letters, or 1 and 0
//	timestamp           a number or text in the form of the unit, or a typed time
//
// The id, if it is not a field, and the names in a match are strings in a CSV. In other files they
// have the type of the cell.
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

// twice returns an error if a list has a name more than once.
func twice(names []string) error {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return fmt.Errorf("column %q is repeated", name)
		}
	}
	return nil
}

// Rows reads the rows of a table as JSON objects with some fields, which the decoder reads like
// records.
type Rows struct {
	Table
	root  *node
	value []byte
}

// RowsOf reads the fields of a stream from a table. Event times become milliseconds.
func RowsOf(t Table, stream *record.Stream) (*Rows, error) {
	root, err := newTree(stream, t.Columns())
	if err != nil {
		return nil, t.At(1, err)
	}
	root.add(stream.Timestamp.Path).typ = isInstant
	return &Rows{Table: t, root: root}, nil
}

// Next returns the next row's object and its cells, valid until the next call.
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
