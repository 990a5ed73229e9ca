package record

import (
	"errors"
	"fmt"
	"slices"
)

// AvroRows reads the records of a schema as rows, whose columns are the fields, also of nested records, by their path
// with dots. Arrays, maps and the fields of a record within itself are no columns. A field that may be of several types has
// the columns of each; one that may be a record or something else is a column, too, which tells which it is.
type AvroRows struct {
	scanner avroScanner
	program *avroType
	columns []string
	nodes   []*Node // of the columns
	known   map[*Node]bool
	fields  int // seen
	values  []Datum
}

// maxAvroFields bounds the fields of a row: a schema of a few lines may nest more of them than there is memory for.
const maxAvroFields = 10_000

// maxAvroTypes bounds the types by which a row is read.
const maxAvroTypes = 20 * maxAvroFields

// NewAvroRows reads a schema, which must be of type record.
func NewAvroRows(schema []byte) (*AvroRows, error) {
	s, err := parseAvro(schema)
	if err != nil {
		return nil, err
	}
	r, root := &AvroRows{known: map[*Node]bool{}}, &Node{}
	if r.add(root, "", s, []*avroSchema{s}); r.fields > maxAvroFields {
		return nil, fmt.Errorf("its records have more than %d fields", maxAvroFields)
	}
	r.values = make([]Datum, root.number(0))
	var ok bool
	if r.program, ok = compileAvroUpTo(maxAvroTypes, s, nil, root); !ok {
		return nil, fmt.Errorf("its records are read by more than %d types", maxAvroTypes)
	}
	if r.program.empty {
		return nil, errors.New("its records take no bytes")
	}
	return r, nil
}

// add adds the columns of a record, which is nested in others.
func (r *AvroRows) add(n *Node, path string, s *avroSchema, within []*avroSchema) {
	for _, f := range s.fields {
		if r.fields++; r.fields > maxAvroFields {
			return
		}
		r.addField(n, path, f, within)
	}
}

// addField adds the columns of a field of a record.
func (r *AvroRows) addField(n *Node, path string, f *avroField, within []*avroSchema) {
	types := []*avroSchema{f.schema}
	if f.schema.kind == "union" {
		types = f.schema.parts
		r.fields += max(0, len(types)-2) // one that is null or something else counts once
	}
	var records []*avroSchema
	scalar, list := false, false
	for _, of := range types {
		switch of.kind {
		case "null":
		case "record":
			records = append(records, of)
		case "array", "map":
			list = true
		default:
			scalar = true
		}
	}
	if scalar || list && records != nil {
		if c := n.add([]string{f.name}); !r.known[c] {
			r.known[c], r.columns, r.nodes = true, append(r.columns, path+f.name), append(r.nodes, c)
		}
	}
	for _, of := range records {
		if !slices.Contains(within, of) {
			r.add(n.add([]string{f.name}), path+f.name+".", of, append(within[:len(within):len(within)], of))
		}
	}
}

// Columns returns the names of the columns.
func (r *AvroRows) Columns() []string { return r.columns }

// Next reads the row that begins at a position of a block, and returns where it ends. Its error is a *Poison.
func (r *AvroRows) Next(block []byte, from int) (to int, err error) {
	if !r.scanner.readAt(r.program, block, from, r.values) {
		return 0, r.scanner.malformed()
	}
	return r.scanner.pos, nil
}

// Cell returns the value of a column in the row that was read last, valid until the next one is read.
func (r *AvroRows) Cell(column int) Datum { return r.values[r.nodes[column].slot] }
