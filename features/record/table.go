package record

import (
	"slices"

	"github.com/weir-stream/weir/value"
)

// tableSlots are where the cells of a row belong in a tree. The column of a path is its names joined
// with dots; those of a location end with .lat and .lon.
type tableSlots struct {
	slots   []int   // by column; -1 for an unused one
	objects []*Node // those with values below them, the deepest first
}

func newTableSlots(tree *Node, columns []string) tableSlots {
	s := tableSlots{slots: make([]int, len(columns))}
	for i := range s.slots {
		s.slots[i] = -1
	}
	s.find(tree, "", columns)
	return s
}

// find finds the columns of a node's value and of those below it.
func (s *tableSlots) find(n *Node, path string, columns []string) {
	for _, c := range n.children {
		column := c.name
		if path != "" {
			column = path + "." + c.name
		}
		if i := slices.Index(columns, column); i >= 0 {
			s.slots[i] = c.slot
		}
		s.find(c, column, columns)
	}
	if len(n.children) > 0 {
		s.objects = append(s.objects, n)
	}
}

// end sets the values above the cells, once these are set and all others are Absent. A column without types that has the name
// of an object, beside those of its parts, does not matter.
func (s *tableSlots) end(values []Datum) {
	for _, n := range s.objects {
		switch values[n.slot].Type {
		case Absent, Null, Untyped:
			values[n.slot].Type = objectOver(n, values)
		}
	}
	values[0].Type = Object
}

// objectOver returns the type of a node without a column: an object if it has any values.
func objectOver(n *Node, values []Datum) DatumType {
	for _, c := range n.children {
		if k := values[c.slot].Type; k != Absent && k != Null {
			return Object
		}
	}
	return Null
}

// NewTableDecoder makes a decoder of events that are rows of a table, independent of the format of their streams'
// records: the columns are named after the paths of fields. Of a record it reads only the topic and the timestamp. cell
// returns a cell of the current row by the index of its column, valid until the next Decode. Decode returns its errors
// unchanged.
func NewTableDecoder(streams []*Stream, columns []string, cell func(column int) (Datum, error)) *Decoder {
	return newDecoder(streams, func(*Stream) Format { return &tableFormat{columns, cell} })
}

type tableFormat struct {
	columns []string
	cell    func(int) (Datum, error)
}

func (*tableFormat) String() string                   { return "table" }
func (*tableFormat) Check([]string, value.Type) error { return nil }

func (f *tableFormat) NewScanner(tree *Node) Scanner {
	s := &tableScanner{tableFormat: f, tableSlots: newTableSlots(tree, f.columns)}
	for column, slot := range s.slots {
		if slot >= 0 {
			s.used = append(s.used, column)
		}
	}
	return s
}

type tableScanner struct {
	*tableFormat
	tableSlots
	used []int // columns
}

func (*tableScanner) readsWithoutValue() {}

// Scan puts the cells of the row into their slots.
func (s *tableScanner) Scan(_ *Record, values []Datum) (err error) {
	clear(values)
	for _, column := range s.used {
		if values[s.slots[column]], err = s.cell(column); err != nil {
			return err
		}
	}
	s.end(values)
	return nil
}
