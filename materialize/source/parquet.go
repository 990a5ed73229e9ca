package source

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/materialize/source/objects"
)

// parquetBlock is the number of rows that are read of each column at a time.
const parquetBlock = 1024

// objectBuffer is how many bytes of a column are read at a time of an object, where each read is a request.
const objectBuffer = 1 << 20

// parquetTable reads the columns of a Parquet file that hold one value per row. A column in a group
// is named by its path with dots. Lists and maps are not columns. A column of a type that cannot be read is an error if
// it is read.
type parquetTable struct {
	file    string
	groups  []parquet.RowGroup
	names   []string
	columns []*parquetCells

	row   int // from 1
	left  int // rows of the group that have not been read into a block
	block int // rows in the block
	next  int // index of the next row in the block
	cells []Cell
}

// parquetCells are the cells of a column in a block.
type parquetCells struct {
	leaf    int
	unread  bool
	cell    cellOf
	err     error                          // instead of cell: the type cannot be read
	values  parquet.ColumnChunkValueReader // of a row group; it buffers what is read ahead
	scratch [parquetBlock]parquet.Value
	cells   [parquetBlock]Cell
	text    []byte
}

// newParquet reads a Parquet file of size bytes. Errors name the file.
func newParquet(file string, r io.ReaderAt, size int64, options ...parquet.FileOption) (Table, error) {
	t := &parquetTable{file: file}
	if err := t.open(r, size, options); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func (t *parquetTable) open(r io.ReaderAt, size int64, options []parquet.FileOption) (err error) {
	defer damaged(&err)
	f, err := openParquet(r, size, options)
	if unread, is := errors.AsType[*objects.Error](err); is {
		return unread
	}
	if err != nil {
		return fmt.Errorf("this is not a Parquet file, or not all of one: %w", err)
	}
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		if leaf.MaxRepetitionLevel > 0 {
			continue
		}
		cell, err := parquetCell(leaf.Node.Type())
		t.names = append(t.names, strings.Join(path, "."))
		t.columns = append(t.columns, &parquetCells{leaf: leaf.ColumnIndex, cell: cell, err: err})
	}
	t.groups, t.cells = f.RowGroups(), make([]Cell, len(t.names))
	return twice(t.names)
}

// openParquet reads the footer of a file. It checks the footer's length first, because the library
// allocates whatever the file claims.
func openParquet(r io.ReaderAt, size int64, options []parquet.FileOption) (*parquet.File, error) {
	const trailer = 8 // the footer's length and the magic number
	var end [trailer]byte
	if size > trailer {
		if _, err := r.ReadAt(end[:], size-trailer); err != nil {
			return nil, err
		}
	}
	if length := int64(binary.LittleEndian.Uint32(end[:])); string(end[4:]) == "PAR1" && length > size {
		return nil, fmt.Errorf("its footer would have %d bytes, and the file has %d", length, size)
	}
	return parquet.OpenFile(r, size, append(options, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))...)
}

// damaged turns a panic into an error: the library panics on some damaged files.
func damaged(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it is damaged: %v", p)
	}
}

func (t *parquetTable) At(line int, err error) error {
	if line == 0 || t.row == 0 {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	return &lineError{File: t.file, Line: line, Row: true, Err: err}
}

func (t *parquetTable) Columns() []string { return t.names }
func (t *parquetTable) Line() int         { return t.row }

func (t *parquetTable) Select(columns []int) {
	for i, c := range t.columns {
		c.unread = !slices.Contains(columns, i)
	}
}

func (t *parquetTable) Next() ([]Cell, error) {
	if t.next == t.block {
		if err := t.read(); err != nil {
			return nil, err
		}
	}
	for i, c := range t.columns {
		if !c.unread {
			t.cells[i] = c.cells[t.next]
		}
	}
	t.next++
	t.row++
	return t.cells, nil
}

// read reads the next block, if necessary from the next row group with rows.
func (t *parquetTable) read() error {
	for t.left == 0 {
		for _, c := range t.columns {
			if c.values != nil {
				_ = c.values.Close()
				c.values = nil
			}
		}
		if len(t.groups) == 0 {
			return io.EOF
		}
		t.left = int(t.groups[0].NumRows())
		chunks := t.groups[0].ColumnChunks()
		for _, c := range t.columns {
			if !c.unread {
				c.values = parquet.NewColumnChunkValueReader(chunks[c.leaf])
			}
		}
		t.groups = t.groups[1:]
	}
	t.block, t.next = min(t.left, parquetBlock), 0
	t.left -= t.block
	for i, c := range t.columns {
		if c.unread {
			continue
		}
		if err := c.read(t.block); err != nil {
			return &lineError{File: t.file, Line: t.row + 1, Row: true, Err: fmt.Errorf("column %s: %w", t.names[i], err)}
		}
	}
	return nil
}

// read reads a block of rows.
func (c *parquetCells) read(rows int) (err error) {
	if c.err != nil {
		return c.err
	}
	defer damaged(&err)
	c.text = c.text[:0]
	for done := 0; done < rows; {
		n, err := c.values.ReadValues(c.scratch[:rows-done])
		for i, v := range c.scratch[:n] {
			if v.IsNull() {
				c.cells[done+i] = Cell{}
				continue
			}
			c.cells[done+i], c.text = c.cell(c.text, v)
		}
		done += n
		switch {
		case done == rows:
		case errors.Is(err, io.EOF) || err == nil && n == 0:
			return errors.New("the column ends before the others")
		case err != nil:
			return err
		}
	}
	return nil
}
