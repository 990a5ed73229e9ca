package materialize

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/value"
)

// Spine is a file of the rows that a training set is to have: entities, by columns with
// the names of features' keys, moments, and columns that are passed on.
type Spine struct {
	table  source.Table
	time   string // the name of the column of moments
	stream *record.Stream
	rows   *source.Rows
	types  []seenTypes // of the columns, by what stands in them
}

// NewSpine makes a spine of a table, whose moments stand in the column of that name.
func NewSpine(t source.Table, timeColumn string) (*Spine, error) {
	if columns := t.Columns(); !slices.Contains(columns, timeColumn) {
		return nil, t.At(1, fmt.Errorf("the moments of the rows: %s; --time-column names another", spelling.Unknown("column", timeColumn, columns)))
	}
	return &Spine{table: t, time: timeColumn, types: make([]seenTypes, len(t.Columns()))}, nil
}

// ask makes of what the features of columns ask by the fields of the spine's rows: they
// are read as the fields of an event are.
func (s *Spine) ask(columns []Column) (err error) {
	s.stream = &record.Stream{
		Name: "of the rows", Topic: "rows", Timestamp: record.TimestampPath{Path: []string{s.time}, Unit: "ms"},
	}
	of := map[string]string{}
	for _, c := range columns {
		if c.of != answered {
			continue
		}
		for _, field := range asks(c.feature) {
			at := s.stream.FieldIndex(field.Name)
			if at < 0 {
				s.stream.Fields = append(s.stream.Fields, field)
				of[field.Name] = c.feature.Name
			} else if had := s.stream.Fields[at]; had.Type != field.Type || had.Scale != field.Scale {
				return fmt.Errorf("%s is of type %s for feature %q and of type %s for %q: make two training sets",
					field.Name, typeName(had), of[field.Name], typeName(field), c.feature.Name)
			}
		}
	}
	s.rows, err = source.RowsOf(s.table, s.stream)
	return err
}

// note looks at the cells of a row for the types of the columns.
func (s *Spine) note(cells []source.Cell) {
	for i := range cells {
		s.types[i].see(&cells[i])
	}
}

// settle gives the columns that are passed on the types of what stands in them.
func (s *Spine) settle(columns []Column) {
	for i := range columns {
		if c := &columns[i]; c.of == passedOn {
			c.field = record.Field{Name: c.Name, Type: s.types[c.at].common()}
		}
	}
}

// seenTypes are the types that each cell of a column could have had; its null cells say
// nothing.
type seenTypes struct{ any, text, fraction, number, truth, time bool }

func (t *seenTypes) see(c *source.Cell) {
	switch c.Kind {
	case source.Null:
		return
	case source.Number:
		t.seeNumber(string(c.Text))
	case source.Bool:
		t.truth = true
	case source.Time:
		t.time = true
	case source.Untyped:
		text := string(c.Text)
		switch {
		case value.ScanNumber(c.Text, 0) == len(c.Text):
			t.seeNumber(text)
		case strings.EqualFold(text, "true") || strings.EqualFold(text, "false"):
			t.truth = true
		default:
			t.text = true
		}
	default:
		t.text = true
	}
	t.any = true
}

func (t *seenTypes) seeNumber(text string) {
	_, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err == nil:
		t.number = true
	case strings.ContainsAny(text, ".eE"):
		t.fraction = true
	default:
		t.text = true // an identity with more digits than 64 bits hold
	}
}

// common is the type that all cells have: that of a text where they differ.
func (t *seenTypes) common() value.Type {
	switch *t {
	case seenTypes{any: true, number: true}:
		return value.Int
	case seenTypes{any: true, fraction: true}, seenTypes{any: true, number: true, fraction: true}:
		return value.Float
	case seenTypes{any: true, truth: true}:
		return value.Bool
	case seenTypes{any: true, time: true}:
		return value.Timestamp
	default:
		return value.String
	}
}

// passed is a cell of a column with a type as it is passed on.
func passed(t value.Type, text []byte) (Cell, error) {
	c := Cell{Text: text, Value: value.Value{Type: t}}
	var err error
	switch t {
	case value.Int:
		c.Value.Num, err = strconv.ParseInt(string(text), 10, 64)
	case value.Float:
		c.Value.Flt, err = strconv.ParseFloat(string(text), 64)
	case value.Bool:
		c.Value = truth(strings.EqualFold(string(text), "true"))
	case value.Timestamp:
		var at time.Time
		at, err = time.Parse(time.RFC3339Nano, string(text))
		c.Value.Num = at.UnixMilli()
	default:
		c.Value.Str = text
	}
	return c, err
}

// appendCells appends the cells of a row that is to be sorted.
func appendCells(dst []byte, cells []source.Cell) []byte {
	for _, c := range cells {
		if c.Kind == source.Null {
			c.Text = nil
		}
		dst = appendText(dst, c.Text)
	}
	return dst
}
