package materialize

import (
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/weir-stream/weir/features/aggregate"
)

// rowGroupSize is the bytes of values in a row group, which is about what the writer holds in
// memory.
const rowGroupSize = 64 << 20

type parquetWriter struct {
	out     *parquet.GenericWriter[any]
	columns []parquetColumn
	row     parquet.Row
	size    int // bytes of values in the row group
	most    int // of size
}

// NewParquetWriter writes a Parquet file, compressed with zstd. A column has the type of its
// feature or field; columns passed on from the spine have the type of their contents:
//
//	string     STRING                  int    INT64
//	float      DOUBLE                  bool   BOOLEAN
//	decimal    see Decimals            timestamp  TIMESTAMP in milliseconds, UTC
//	location   a group of lat and lon, DOUBLE
//
// All columns but the event's id and its time are nullable. A list is a LIST of such values. A list of counts is a LIST
// of groups of value and count, and a list of bins a LIST of groups of from, to and count. Values by category are a
// MAP.
func NewParquetWriter(out io.Writer, columns []Column, decimals Decimals) (Writer, error) {
	w := &parquetWriter{most: rowGroupSize}
	root := parquetRoot{}
	first := 0
	for i := range columns {
		c, node := columns[i].parquet(first, decimals)
		first += len(c.leaves)
		w.columns = append(w.columns, c)
		root.fields = append(root.fields, parquetField{node, columns[i].Name})
	}
	w.out = parquet.NewGenericWriter[any](out, parquet.NewSchema("training_set", root), parquet.Compression(&zstd.Codec{}))
	return w, nil
}

func (w *parquetWriter) Write(cells []Cell) error {
	w.row = w.row[:0]
	for i := range cells {
		if err := w.cell(&w.columns[i], &cells[i]); err != nil {
			return err
		}
	}
	if _, err := w.out.WriteRows([]parquet.Row{w.row}); err != nil {
		return err
	}
	if w.size < w.most {
		return nil
	}
	w.size = 0
	return w.out.Flush()
}

// cell appends the values of a cell to the row, leaf by leaf. All values of a list but the first
// have a repetition level.
func (w *parquetWriter) cell(c *parquetColumn, cell *Cell) error {
	scalar := [1]aggregate.Item{{Value: cell.Value}}
	items := scalar[:]
	if c.list {
		items = cell.Items
	}
	for i := range c.leaves {
		l := &c.leaves[i]
		if len(items) == 0 {
			defined := 0
			if items != nil {
				defined = isCell // a list without elements
			}
			w.row = append(w.row, parquet.NullValue().Level(0, defined, l.column))
		}
		for n := range items {
			v, defined := l.of(&items[n]), l.level
			value, err := l.value(v)
			if err != nil {
				return &cellError{Column: c.name, Err: err}
			}
			if v.IsNull() {
				defined--
			}
			w.row = append(w.row, value.Level(min(n, 1), defined, l.column))
			w.size += 8 + len(v.Str)
		}
	}
	return nil
}

func (w *parquetWriter) Close() error { return w.out.Close() }
