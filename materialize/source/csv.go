package source

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
)

// csvTable is a CSV whose first line names the columns. An empty cell is null.
type csvTable struct {
	file    string
	reader  *csv.Reader
	columns []string
	line    int
	cells   []Cell
	text    []byte
}

// NewCSV reads a CSV. The file is named in errors.
func NewCSV(file string, r io.Reader) (Table, error) {
	t := &csvTable{file: file, reader: csv.NewReader(r)}
	t.reader.ReuseRecord = true
	header, err := t.reader.Read()
	if err == io.EOF {
		return nil, t.At(1, errors.New("the file is empty; its first line must name the columns"))
	}
	if err != nil {
		return nil, t.wrong(err)
	}
	t.columns = slices.Clone(header)
	t.columns[0] = strings.TrimPrefix(t.columns[0], "\ufeff") // as spreadsheets begin a file
	if err := twice(t.columns); err != nil {
		return nil, t.At(1, err)
	}
	t.cells = make([]Cell, len(t.columns))
	return t, nil
}

func (t *csvTable) At(line int, err error) error {
	return &LineError{File: t.file, Line: line, Err: err}
}

// wrong places an error of the reader at the row's first line: a quote that is
// never closed is found at the file's end only.
func (t *csvTable) wrong(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		t.line, err = parse.StartLine, parse.Err
	}
	return t.At(max(t.line, 1), err)
}

func (t *csvTable) Columns() []string { return t.columns }
func (t *csvTable) Select([]int)      {}
func (t *csvTable) Line() int         { return t.line }

func (t *csvTable) Next() ([]Cell, error) {
	record, err := t.reader.Read()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, t.wrong(err)
	}
	t.line, _ = t.reader.FieldPos(0)
	t.text = t.text[:0]
	for _, text := range record {
		t.text = append(t.text, text...)
	}
	rest := t.text
	for i, text := range record {
		t.cells[i] = Cell{}
		if text != "" {
			t.cells[i] = Cell{Kind: Untyped, Text: rest[:len(text):len(text)]}
		}
		rest = rest[len(text):]
	}
	return t.cells, nil
}
