package materialize

import (
	"encoding/csv"
	"io"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
)

type csvWriter struct {
	out  *csv.Writer
	row  []string
	text []byte
}

// NewCSVWriter writes a CSV: a line of names, and one for each row. Nulls are
// empty, and values by category an object in JSON, in the order of its names.
// Its columns hold no lists.
func NewCSVWriter(out io.Writer, columns []Column) (Writer, error) {
	w := &csvWriter{out: csv.NewWriter(out)}
	var header []string
	for _, c := range columns {
		header = append(header, c.Name)
	}
	return w, w.out.Write(header)
}

func (w *csvWriter) Write(cells []Cell) error {
	w.row = w.row[:0]
	for _, c := range cells {
		switch {
		case c.Text != nil:
			w.text = append(w.text[:0], c.Text...)
		case c.Items == nil:
			w.text = c.Value.AppendText(w.text[:0])
		default:
			a := query.Answer{Items: c.Items, Shape: aggregate.Categories}
			w.text = a.AppendValue(w.text[:0])
		}
		w.row = append(w.row, string(w.text))
	}
	return w.out.Write(w.row)
}

func (w *csvWriter) Close() error {
	w.out.Flush()
	return w.out.Error()
}
