package materialize

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
)

type csvSource struct {
	file   string
	reader *csv.Reader
	line   int
	root   *node
	record []byte
}

// NewCSV reads events from a CSV whose first line names the columns. A column's
// name is the path of a field, of the event's time, its id or a name in the
// stream's match; a location has two, with .lat and .lon behind its path. All
// of them must be there. Other columns are passed over.
//
// A CSV has text only, so what a cell holds is decided by the type of its
// field, and an empty one is null:
//
//	string              the text as it stands
//	int, float, decimal a number as in JSON
//	bool                true and false, also with capital letters, or 1 and 0
//	timestamp           a number, else text in the form of the unit
//
// The id, if it is no field, and the names in a match are strings.
func NewCSV(file string, r io.Reader, stream *record.Stream) (Source, error) {
	s := &csvSource{file: file, reader: csv.NewReader(r), line: 1}
	s.reader.ReuseRecord = true
	header, err := s.reader.Read()
	if err == io.EOF {
		return nil, s.At(errors.New("the file is empty; its first line must name the columns"))
	}
	if err != nil {
		return nil, s.wrong(err)
	}
	header = slices.Clone(header)
	header[0] = strings.TrimPrefix(header[0], "\ufeff") // as spreadsheets begin a file
	for i, name := range header {
		if slices.Contains(header[:i], name) {
			return nil, s.At(fmt.Errorf("column %q is there twice", name))
		}
	}
	if s.root, err = newTree(stream, header); err != nil {
		return nil, s.At(err)
	}
	return s, nil
}

func (s *csvSource) At(err error) error { return &LineError{File: s.file, Line: s.line, Err: err} }

// wrong places an error of the reader at the row's first line: a quote that is
// never closed is found at the file's end only.
func (s *csvSource) wrong(err error) error {
	if parse, ok := errors.AsType[*csv.ParseError](err); ok {
		s.line, err = parse.StartLine, parse.Err
	}
	return s.At(err)
}

func (s *csvSource) Next() ([]byte, error) {
	cells, err := s.reader.Read()
	if err == io.EOF {
		return nil, io.EOF
	}
	if err != nil {
		return nil, s.wrong(err)
	}
	s.line, _ = s.reader.FieldPos(0)
	s.record, err = s.root.append(s.record[:0], cells)
	if err != nil {
		return nil, s.At(err)
	}
	return s.record, nil
}
