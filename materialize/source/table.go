package source

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
)

// CellType is the type of a cell of a table.
type CellType uint8

// The types of cells.
const (
	Null    CellType = iota
	Untyped          // text without a type, as in a CSV
	String
	Number // a number as JSON writes it
	Bool   // true or false
	Time
	Object // a value with parts, which may be columns of their own; it has no text
	Array
)

// Cell is the value of a row in one column.
type Cell struct {
	Type CellType
	Text []byte // of a Time in RFC 3339
	Ms   int64  // of a Time: milliseconds since 1970
	// Local means that nothing says in which zone a clock shows the Time, which is as if it were one in UTC.
	Local bool
}

// Table is a file of rows, each with the same columns.
type Table interface {
	// Columns returns the names of the columns, all different.
	Columns() []string
	// Select limits reading to some columns; the cells of the others may be Null. Without a call all columns are read.
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
	root    *node
	decoded []*decodedCells // by decoder
}

// decodedCells are the cells of a row for a decoder.
type decodedCells struct {
	nodes []*node // by column; nil for those that are not read
	cells []Cell
	text  []byte // memory of the row's texts
}

// newDecoder makes a decoder of the cells, which are set for each row.
func (c *decodedCells) newDecoder(t Table, root *node, streams []*record.Stream) *record.Decoder {
	c.nodes = make([]*node, len(t.Columns()))
	root.read(c.nodes)
	columns := slices.Clone(t.Columns())
	for i, n := range c.nodes {
		if n == nil {
			columns[i] = "" // the path of nothing
		}
	}
	return record.NewTableDecoder(streams, columns, func(column int) (d record.Datum, err error) {
		n, cell := c.nodes[column], &c.cells[column]
		if cell.Type == Null || n.children != nil && !n.covered(c.cells) {
			return record.Datum{}, nil // what is above or below it tells what it is
		}
		d, c.text, err = n.datum(c.text, cell)
		return d, err
	})
}

// set sets the row.
func (c *decodedCells) set(cells []Cell) { c.cells, c.text = cells, c.text[:0] }

// EventsOf reads a table as events of a stream. A column is named after the path of a field, of the
// event's time or id, or of a name in the stream's match. A location has two columns, whose names
// are its path followed by .lat and .lon. All of these must exist; other columns are skipped.
//
// The type of the field decides what its cells must hold. Null, and an empty cell of a CSV, are
// null:
//
//	string              the text unchanged, or a whole number
//	int, float, decimal a number as in JSON
//	bool                true and false, also with capital letters, or 1 and 0
//	timestamp           a number or text in the form of the unit, or a typed time
//
// The id, if it is not a field, and the names in a match are strings in a CSV. In other files they
// have the type of the cell.
//
// A stream that makes several events of a record cannot be read from a table.
func EventsOf(t Table, stream *record.Stream) (Source, error) {
	if stream.Each != nil {
		return nil, t.At(1, fmt.Errorf("stream %s makes an event of each element of %s, and rows of a table have no arrays: give lines of JSON", stream.Name, strings.Join(stream.Each, ".")))
	}
	root, err := newTree(stream, t.Columns())
	if err != nil {
		return nil, t.At(1, err)
	}
	t.Select(root.columns(nil))
	e := &events{Table: t, root: root}
	if t, ok := t.(*csvTable); ok {
		return &csvEvents{e, t}, nil
	}
	return e, nil
}

func (e *events) NewDecoder(streams []*record.Stream) *record.Decoder {
	c := &decodedCells{}
	e.decoded = append(e.decoded, c)
	return c.newDecoder(e.Table, e.root, streams)
}

func (e *events) Next(event *Event) error {
	cells, err := e.Table.Next()
	if err != nil {
		return err
	}
	for _, c := range e.decoded {
		c.set(cells)
	}
	*event = Event{RecordTime: record.NoTime, Line: e.Line()}
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

// Rows reads the rows of a table for a decoder of a stream.
type Rows struct {
	Table
	*record.Decoder // of the row that was read last
	cells           decodedCells
}

// RowsOf reads the fields of a stream from a table. Event times become milliseconds.
func RowsOf(t Table, stream *record.Stream) (*Rows, error) {
	root, err := newTree(stream, t.Columns())
	if err != nil {
		return nil, t.At(1, err)
	}
	root.add(stream.Timestamp.Path).typ = isInstant
	r := &Rows{Table: t}
	r.Decoder = r.cells.newDecoder(t, root, []*record.Stream{stream})
	return r, nil
}

// Next returns the next row's cells, valid until the next call.
func (r *Rows) Next() (cells []Cell, err error) {
	if cells, err = r.Table.Next(); err == nil {
		r.cells.set(cells)
	}
	return cells, err
}

var _ io.Closer = (*File)(nil)
