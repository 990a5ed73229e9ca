package source

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
)

// csvTable is a CSV whose first line names the columns. An empty cell is null, and empty quotes are an empty text.
type csvTable struct {
	file    string
	records csvRecords
	columns []string
	chosen  []bool // by column; nil means all
	line    int
	cells   []Cell
}

// NewCSV reads a CSV. Errors name the file.
func NewCSV(file string, r io.Reader) (Table, error) {
	t := &csvTable{file: file, records: newRecords(withoutMark(r))}
	header, err := t.read()
	if err == io.EOF {
		return nil, t.At(1, errors.New("the file is empty; its first line must name the columns"))
	}
	if err != nil {
		return nil, err
	}
	for _, name := range header {
		t.columns = append(t.columns, string(name))
	}
	if err := cmp.Or(commas(t.columns), twice(t.columns)); err != nil {
		return nil, t.At(1, err)
	}
	t.cells = make([]Cell, len(t.columns))
	return t, nil
}

const carriageReturns = `its lines end with carriage returns alone: convert them, for example with tr '\r' '\n'`

// commas returns an error if the names of columns were separated by anything else, or their line not ended.
func commas(columns []string) error {
	for _, name := range columns {
		if strings.Contains(name, "\r") {
			return errors.New(carriageReturns)
		}
	}
	if len(columns) == 1 && strings.ContainsAny(columns[0], ";\t|") {
		return fmt.Errorf("it has one column, %q: separate columns with commas", columns[0])
	}
	return nil
}

func (t *csvTable) At(line int, err error) error {
	return &lineError{File: t.file, Line: line, Err: err}
}

func (t *csvTable) Columns() []string { return t.columns }
func (t *csvTable) Line() int         { return t.line }

func (t *csvTable) Select(columns []int) {
	t.chosen, t.records.most = make([]bool, len(t.columns)), 1
	for _, c := range columns {
		t.chosen[c], t.records.most = true, max(t.records.most, c+1)
	}
}

// read reads a record. Errors name the record's first line: a quote that is never closed is found
// only at the end of the file.
func (t *csvTable) read() ([][]byte, error) {
	record, count, line, err := t.records.next()
	if err == io.EOF {
		return nil, io.EOF
	}
	t.line = line
	if err == nil && t.columns != nil && count != len(t.columns) {
		err = csv.ErrFieldCount
	}
	if err != nil {
		return nil, t.At(line, err)
	}
	return record, nil
}

func (t *csvTable) Next() ([]Cell, error) {
	record, err := t.read()
	if err != nil {
		return nil, err
	}
	for i, text := range record {
		if t.chosen != nil && !t.chosen[i] {
			continue
		}
		t.cells[i] = Cell{}
		if text != nil {
			t.cells[i] = Cell{Type: Untyped, Text: text[:len(text):len(text)]}
		}
	}
	return t.cells, nil
}

// part returns a table of the rows of parts.
func (t *csvTable) part() *csvTable {
	return &csvTable{file: t.file, columns: t.columns, chosen: t.chosen, cells: make([]Cell, len(t.columns)), records: csvRecords{most: t.records.most}}
}

// csvEvents are events of a CSV.
type csvEvents struct {
	*events
	table *csvTable
}

func (e *csvEvents) Cut(p *Part, size int) error {
	err := e.table.records.cut(p, size)
	if err != nil && err != io.EOF {
		err = e.At(e.table.records.line, err)
	}
	return err
}

func (e *csvEvents) NewPartReader() PartReader {
	part := e.table.part()
	return &csvEvents{&events{Table: part, root: e.root}, part}
}

func (e *csvEvents) Reset(p *Part) { e.table.records.set(p) }

// csvRecords reads the same records as encoding/csv. Lines without a quote, which most are, are
// split at their commas, which takes a third of the time.
type csvRecords struct {
	textLines
	most  int // number of first cells that are needed of a record; 0 means all
	cells [][]byte

	standard   *csv.Reader // reads the records with quotes
	quotedText bytes.Reader
}

func newRecords(r io.Reader) csvRecords {
	return csvRecords{textLines: textLines{cutter: &cutter{in: r, quotes: true, most: maxLine}}}
}

// next reads a record and returns its first cells, at least those that are needed, how many it has,
// and the number of its first line. A cell without anything, even quotes, is nil. The record is valid until the next call.
func (r *csvRecords) next() (record [][]byte, count, line int, err error) {
	var text []byte
	for len(text) == 0 {
		if text, err = r.textLines.next(); err != nil {
			return nil, 0, r.line, err
		}
		if r.quoted && bytes.Contains(text, quote) {
			record, line, err = r.readQuoted(text)
			return record, len(record), line, err
		}
		text = trimLine(text)
	}
	r.cells = r.cells[:0]
	for r.most == 0 || len(r.cells) < r.most {
		end := bytes.IndexByte(text, ',')
		if end < 0 {
			r.cells = append(r.cells, unquoted(text))
			return r.cells, len(r.cells), r.line, nil
		}
		r.cells = append(r.cells, unquoted(text[:end]))
		text = text[end+1:]
	}
	return r.cells, len(r.cells) + 1 + bytes.Count(text, comma), r.line, nil
}

// unquoted returns a cell without quotes, nil if it is empty.
func unquoted(cell []byte) []byte {
	if len(cell) == 0 {
		return nil
	}
	return cell
}

// trimLine removes the end of a line.
func trimLine(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}

// readQuoted reads a record with quotes, which continues until every quote is closed.
func (r *csvRecords) readQuoted(start []byte) (record [][]byte, line int, err error) {
	text, line := start, r.line
	for quotes := bytes.Count(text, quote); quotes%2 > 0; {
		more, err := r.textLines.next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, r.line, err
		}
		text, quotes = append(text, more...), quotes+bytes.Count(more, quote)
	}
	if r.standard == nil {
		r.standard = csv.NewReader(&r.quotedText)
		r.standard.FieldsPerRecord, r.standard.ReuseRecord = -1, true
	}
	r.quotedText.Reset(text)
	cells, err := r.standard.Read()
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		return nil, line, parse.Err
	}
	if err != nil {
		return nil, line, err
	}
	r.cells = r.cells[:0]
	for i, cell := range cells {
		if cell == "" && !r.startsWithQuote(text, i) {
			r.cells = append(r.cells, nil)
			continue
		}
		r.cells = append(r.cells, append([]byte{}, cell...))
	}
	return r.cells, line, nil
}

// startsWithQuote reports whether a cell of the record that was read last from a text starts with a quote.
func (r *csvRecords) startsWithQuote(text []byte, cell int) bool {
	line, column := r.standard.FieldPos(cell)
	first, _ := r.standard.FieldPos(0)
	for ; line > first; line-- {
		text = text[bytes.IndexByte(text, '\n')+1:]
	}
	return column <= len(text) && text[column-1] == '"'
}
