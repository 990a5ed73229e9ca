package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// csvSpec is the row of the format whose records are single lines of a CSV (RFC 4180). A path's
// column is its names joined with dots; those of a location end with .lat and .lon. A cell is
// Untyped; an empty one is a Null, and empty quotes are an empty text.
var csvSpec = FormatSpec{
	Name: "csv", Describes: "one line of comma-separated values", New: newCSV,
	Options: []Option{
		{Name: "columns", Describes: "the names of the columns, in order", List: true, Required: true},
		{Name: "separator", Describes: "the character between cells; a comma by default"},
	},
}

type csvFormat struct {
	columns   []string
	separator byte
}

func newCSV(options Options) (Format, error) {
	f := &csvFormat{columns: options.Texts["columns"], separator: ','}
	for i, column := range f.columns {
		if slices.Contains(f.columns[:i], column) {
			return nil, &OptionError{"columns", fmt.Sprintf("column %q appears twice in columns", column)}
		}
	}
	if given := options.Texts["separator"]; given != nil {
		s := given[0]
		if len(s) != 1 || s[0] >= 0x80 || strings.ContainsAny(s, "\"\r\n") {
			return nil, &OptionError{"separator", fmt.Sprintf("bad separator %q: it must be one ASCII character other than a quote or a line break", s)}
		}
		f.separator = s[0]
	}
	return f, nil
}

func (f *csvFormat) String() string { return fmt.Sprintf("csv %q %q", f.columns, f.separator) }

func (f *csvFormat) Check(path []string, _ value.Type) error {
	if column := strings.Join(path, "."); !slices.Contains(f.columns, column) {
		return fmt.Errorf("%s", spelling.Unknown("column", column, f.columns))
	}
	return nil
}

func (f *csvFormat) NewScanner(tree *Node) Scanner {
	return &csvScanner{csvFormat: f, tableSlots: newTableSlots(tree, f.columns)}
}

// csvTextFormat is the format of lines given as strings of JSON, or as objects with the same paths.
type csvTextFormat struct{ *csvFormat }

func (f csvTextFormat) NewScanner(tree *Node) Scanner {
	return &csvTextScanner{lines: f.csvFormat.NewScanner(tree), objects: JSON.NewScanner(tree)}
}

type csvTextScanner struct{ lines, objects Scanner }

// Scan finds the values of the tree in a line or an object.
func (s *csvTextScanner) Scan(rec *Record, values []Datum) error {
	if !bytes.HasPrefix(rec.Value, quote) {
		return s.objects.Scan(rec, values)
	}
	var line string
	if err := json.Unmarshal(rec.Value, &line); err != nil {
		return &Poison{Reason: Malformed, Message: "malformed JSON: " + err.Error()}
	}
	return s.lines.Scan(&Record{Value: []byte(line)}, values)
}

var quote = []byte{'"'}

// csvScanner reads lines for one tree.
type csvScanner struct {
	*csvFormat
	tableSlots
	text []byte // memory for cells with quotes in them
}

// Scan finds the values of the tree in a line, with or without a line end.
func (s *csvScanner) Scan(rec *Record, values []Datum) error {
	clear(values)
	s.text = s.text[:0]
	line := bytes.TrimSuffix(bytes.TrimSuffix(rec.Value, []byte("\n")), []byte("\r"))
	for column, pos := 0, 0; ; column++ {
		cell, next, err := s.cell(line, pos)
		if err != nil {
			return err
		}
		if column < len(s.slots) && s.slots[column] >= 0 {
			values[s.slots[column]] = cell
		}
		if next == len(line) {
			if column+1 != len(s.columns) {
				return malformed("expected %s, found %d", spelling.Counted(len(s.columns), "cell"), column+1)
			}
			break
		}
		pos = next + 1
	}
	s.end(values)
	return nil
}

// cell reads the cell at a position of the line, and returns the position of the separator after
// it, or of the line's end.
func (s *csvScanner) cell(line []byte, pos int) (cell Datum, next int, err error) {
	if pos < len(line) && line[pos] == '"' {
		return s.quoted(line, pos)
	}
	for next = pos; next < len(line) && line[next] != s.separator; next++ {
		switch line[next] {
		case '"':
			return cell, 0, malformed("a quote at byte %d of an unquoted cell", next)
		case '\r', '\n':
			return cell, 0, malformed("more than one line: the first ends at byte %d of %d", next, len(line))
		}
	}
	if next == pos {
		return Datum{Type: Null}, next, nil
	}
	return Datum{Type: Untyped, Text: line[pos:next:next]}, next, nil
}

// quoted reads a quoted cell; two quotes in it are one.
func (s *csvScanner) quoted(line []byte, pos int) (cell Datum, next int, err error) {
	from, opened := len(s.text), pos
	for pos++; ; pos += 2 {
		end := bytes.IndexByte(line[pos:], '"')
		if end < 0 {
			return cell, 0, malformed("the quote at byte %d is not closed", opened)
		}
		text := line[pos : pos+end : pos+end]
		if pos += end; pos+1 < len(line) && line[pos+1] == '"' {
			s.text = append(append(s.text, text...), '"')
			continue
		}
		if len(s.text) > from {
			s.text = append(s.text, text...)
			text = s.text[from:len(s.text):len(s.text)]
		}
		if next = pos + 1; next < len(line) && line[next] != s.separator {
			return cell, 0, malformed("expected a separator at byte %d, after a quoted cell", next)
		}
		return Datum{Type: Untyped, Text: text}, next, nil
	}
}

func malformed(format string, args ...any) error {
	return &Poison{Reason: Malformed, Message: "malformed CSV: " + fmt.Sprintf(format, args...)}
}
