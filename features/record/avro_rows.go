package record

import (
	"errors"
	"fmt"
	"slices"
)

// AvroRows reads the records of a schema as rows, whose columns are the fields, also of nested records, by their path
// with dots. A field that may be of several types besides null is not a column, nor are arrays, maps and the fields of a
// record within itself.
type AvroRows struct {
	scanner avroScanner
	program *avroType
	columns []string
	nodes   []*Node // of the columns
	fields  int     // seen
	values  []Datum
}

// maxAvroFields bounds the fields of a row: a schema of a few lines may nest more of them than there is memory for.
const maxAvroFields = 10_000

// NewAvroRows reads a schema, which must be of type record.
func NewAvroRows(schema []byte) (*AvroRows, error) {
	s, err := parseAvro(schema)
	if err != nil {
		return nil, err
	}
	r, root := &AvroRows{}, &Node{}
	if r.add(root, "", s, []*avroSchema{s}); r.fields > maxAvroFields {
		return nil, fmt.Errorf("its records have more than %d fields", maxAvroFields)
	}
	r.values = make([]Datum, root.number(0))
	if r.program = compileAvro(s, nil, root); r.program.empty {
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
		of := f.schema
		if of.kind == "union" {
			of = orNull(of)
		}
		switch of.kind {
		case "union", "array", "map", "null":
		case "record":
			if !slices.Contains(within, of) {
				r.add(n.add([]string{f.name}), path+f.name+".", of, append(within[:len(within):len(within)], of))
			}
		default:
			r.columns = append(r.columns, path+f.name)
			r.nodes = append(r.nodes, n.add([]string{f.name}))
		}
	}
}

// orNull returns the type that a union has beside null; the union itself if there are several.
func orNull(union *avroSchema) *avroSchema {
	if len(union.parts) == 2 {
		for i, branch := range union.parts {
			if branch.kind == "null" {
				return union.parts[1-i]
			}
		}
	}
	return union
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
