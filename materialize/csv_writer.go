package materialize

import (
	"bytes"
	"io"
	"unicode"
	"unicode/utf8"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/value"
)

// csvWriter writes lines like encoding/csv, which takes strings.
type csvWriter struct {
	out   io.Writer
	lines []byte // not yet written
	text  []byte
}

// csvBuffer is how many bytes are written at a time.
const csvBuffer = 64 << 10

// NewCSVWriter writes a CSV: a line of names, and one for each row. Nulls are empty, and values by
// category are a JSON object, sorted by name. Its columns contain no lists.
func NewCSVWriter(out io.Writer, columns []Column) (Writer, error) {
	w := &csvWriter{out: out}
	for i, c := range columns {
		w.cell(i, []byte(c.Name))
	}
	return w, w.end()
}

func (w *csvWriter) Write(cells []Cell) error {
	for i := range cells {
		c := &cells[i]
		switch {
		case c.Text != nil:
			w.cell(i, c.Text)
		case c.Items == nil:
			w.value(i, &c.Value)
		default:
			a := query.Answer{Items: c.Items, Shape: aggregate.Categories}
			w.text = a.AppendValue(w.text[:0])
			w.cell(i, w.text)
		}
	}
	return w.end()
}

// value adds a cell with a value. Only strings, and locations with their comma, may need quotes.
func (w *csvWriter) value(i int, v *value.Value) {
	if v.Type == value.String || v.Type == value.Location {
		w.text = v.AppendText(w.text[:0])
		w.cell(i, w.text)
		return
	}
	if i > 0 {
		w.lines = append(w.lines, ',')
	}
	w.lines = v.AppendText(w.lines)
}

// cell adds a cell to the line.
func (w *csvWriter) cell(i int, text []byte) {
	if i > 0 {
		w.lines = append(w.lines, ',')
	}
	if !quoted(text) {
		w.lines = append(w.lines, text...)
		return
	}
	w.lines = append(w.lines, '"')
	for _, c := range text {
		if c == '"' {
			w.lines = append(w.lines, '"')
		}
		w.lines = append(w.lines, c)
	}
	w.lines = append(w.lines, '"')
}

// quoted reports whether a text needs quotes because some reader would not read it unchanged. \. alone ends a table for
// PostgreSQL, and without quotes an empty text is null.
func quoted(text []byte) bool {
	if len(text) == 0 || bytes.ContainsAny(text, ",\"\r\n") || string(text) == `\.` {
		return true
	}
	first, _ := utf8.DecodeRune(text)
	return unicode.IsSpace(first)
}

// end ends a line.
func (w *csvWriter) end() error {
	w.lines = append(w.lines, '\n')
	if len(w.lines) < csvBuffer {
		return nil
	}
	return w.Close()
}

// Close writes the buffered rows.
func (w *csvWriter) Close() error {
	_, err := w.out.Write(w.lines)
	w.lines = w.lines[:0]
	return err
}
