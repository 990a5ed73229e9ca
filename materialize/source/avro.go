package source

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/weir-stream/weir/features/record"
)

// avroTable reads the fields of the records of an Avro object container file, as record.AvroRows does.
type avroTable struct {
	file  string
	in    *avroFile
	rows  *record.AvroRows
	block []byte
	at    int   // in the block
	left  int64 // records of the block
	row   int   // from 1
	cells []Cell
	text  []byte
}

// newAvro reads a container file. Errors name the file.
func newAvro(file string, in io.Reader) (Table, error) {
	from, err := newAvroFile(in)
	if why, ok := errors.AsType[notAvro](err); ok {
		return nil, fmt.Errorf("%s: this is not an Avro container file, or not all of one: %w", file, why)
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	rows, err := record.NewAvroRows(from.schema)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return &avroTable{file: file, in: from, rows: rows, cells: make([]Cell, len(rows.Columns()))}, nil
}

func (t *avroTable) Columns() []string { return t.rows.Columns() }

// Select does nothing: records are always read whole.
func (t *avroTable) Select([]int) {}

func (t *avroTable) Line() int { return t.row }

func (t *avroTable) At(line int, err error) error {
	if line == 0 || t.row == 0 {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return &lineError{File: t.file, Line: line, Row: true, Err: err}
}

func (t *avroTable) Next() ([]Cell, error) {
	switch err := t.read(); {
	case err == io.EOF:
		return nil, err
	case err != nil:
		return nil, &lineError{File: t.file, Line: t.row + 1, Row: true, Err: err}
	}
	t.row++
	t.text = t.text[:0]
	for i := range t.cells {
		t.cells[i] = t.cell(t.rows.Cell(i))
	}
	return t.cells, nil
}

// read reads the next record. A block may have none.
func (t *avroTable) read() (err error) {
	for t.left == 0 {
		if t.at < len(t.block) {
			return fmt.Errorf("it is damaged: a block has %d bytes after its last record", len(t.block)-t.at)
		}
		t.at = 0
		t.left, t.block, err = t.in.next()
		if why, ok := errors.AsType[notAvro](err); ok {
			return fmt.Errorf("it is damaged: %w", why)
		} else if err != nil {
			return err
		}
	}
	t.left--
	t.at, err = t.rows.Next(t.block, t.at)
	return err
}

// cell converts a value of a record to a cell.
func (t *avroTable) cell(d record.Datum) Cell {
	switch d.Type {
	case record.True, record.False:
		return Cell{Type: Bool, Text: strconv.AppendBool(nil, d.Type == record.True)}
	case record.String:
		return Cell{Type: String, Text: d.Text}
	case record.Number:
		if at, ok := d.Moment(); ok {
			from := len(t.text)
			t.text = at.AppendFormat(t.text, time.RFC3339Nano)
			return Cell{Type: Time, Text: t.text[from:len(t.text):len(t.text)], Ms: at.UnixMilli()}
		}
		return Cell{Type: Number, Text: d.Text}
	case record.Object:
		return Cell{Type: Object}
	case record.Array:
		return Cell{Type: Array}
	}
	return Cell{}
}
