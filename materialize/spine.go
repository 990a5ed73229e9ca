package materialize

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Spine is a file of the rows that a training set should have. Its columns are entities, named
// after the keys of features, the moment of each row, and columns that are passed on unchanged.
type Spine struct {
	table  source.Table
	time   string // the name of the column of moments
	stream *record.Stream
	rows   *source.Rows
	types  []seenTypes // by column, from its contents
	// held are, by feature, the fields of the event in hand that the rows have in columns.
	held map[string][]heldField
}

// heldField is a field of an event that the rows have in a column.
type heldField struct {
	of int // in the event
	at int // among the fields of the rows
}

// NewSpine makes a spine from a table. timeColumn names the column of its moments.
func NewSpine(t source.Table, timeColumn string) (*Spine, error) {
	if columns := t.Columns(); !slices.Contains(columns, timeColumn) {
		return nil, t.At(1, fmt.Errorf("the moments of the rows: %s; --time-column names another", spelling.Unknown("column", timeColumn, columns)))
	}
	return &Spine{table: t, time: timeColumn, types: make([]seenTypes, len(t.Columns()))}, nil
}

// ask makes the fields that the columns' features ask for the fields of the spine's rows. Rows are
// then decoded like events.
func (s *Spine) ask(columns []Column) (err error) {
	s.stream = &record.Stream{
		Name: "of the rows", Topic: "rows", Timestamp: record.TimestampPath{Path: []string{s.time}, Form: record.TimeForm{Unit: "ms"}},
	}
	of := map[string]string{}
	for _, c := range columns {
		if c.of != answered {
			continue
		}
		for _, field := range append(asks(c.feature), s.columnsOfEvent(c.feature)...) {
			at := s.stream.FieldIndex(field.Name)
			if at < 0 {
				s.stream.Fields = append(s.stream.Fields, field)
				of[field.Name] = c.feature.Name
			} else if had := s.stream.Fields[at]; had.Type != field.Type || had.Scale != field.Scale {
				return fmt.Errorf("%s is of type %s for feature %q and of type %s for %q: make two training sets",
					field.Name, typeName(had), of[field.Name], typeName(field), c.feature.Name)
			}
		}
		s.hold(c.feature)
	}
	s.rows, err = source.RowsOf(s.table, s.stream)
	return err
}

// eventColumn returns the name of the column with a field of the event in hand.
func eventColumn(field string) string { return expr.EventName + "." + field }

// columnsOfEvent returns the fields of the event in hand that a feature reads, if the rows have a column for each.
func (s *Spine) columnsOfEvent(f *features.Feature) (fields []record.Field) {
	columns := s.table.Columns()
	for _, i := range f.OfEvent() {
		field := f.InHand.Fields[i]
		name := eventColumn(field.Name)
		if field.Type == value.Location || !slices.Contains(columns, name) {
			return nil
		}
		fields = append(fields, record.Field{Name: name, Type: field.Type, Scale: field.Scale, Path: []string{name}})
	}
	return fields
}

// hold notes which fields of the event in hand the rows have for a feature.
func (s *Spine) hold(f *features.Feature) {
	if len(s.columnsOfEvent(f)) == 0 {
		return
	}
	if s.held == nil {
		s.held = map[string][]heldField{}
	}
	for _, i := range f.OfEvent() {
		s.held[f.Name] = append(s.held[f.Name], heldField{i, s.stream.FieldIndex(eventColumn(f.InHand.Fields[i].Name))})
	}
}

// inHand returns the event in hand that a row has for a feature; nil if it lacks a column.
func (s *Spine) inHand(f *features.Feature, row *record.Event) *record.Event {
	held := s.held[f.Name]
	if held == nil {
		return nil
	}
	e := &record.Event{Stream: f.InHand, Time: row.Time, Now: row.Now, Values: make([]value.Value, len(f.InHand.Fields))}
	for _, h := range held {
		e.Values[h.of] = row.Values[h.at]
	}
	return e
}

// note updates the types of the columns from the cells of a row.
func (s *Spine) note(cells []source.Cell) {
	for i := range cells {
		s.types[i].see(&cells[i])
	}
}

// setTypes gives the columns that are passed on the types of their contents.
func (s *Spine) setTypes(columns []Column) {
	for i := range columns {
		if c := &columns[i]; c.of == passedOn {
			c.field = record.Field{Name: c.Name, Type: s.types[c.at].common()}
		}
	}
}

// seenTypes says which types the cells of a column have had so far. Null cells have none.
type seenTypes struct{ any, text, fraction, number, truth, time bool }

func (t *seenTypes) see(c *source.Cell) {
	switch c.Type {
	case source.Null, source.Object, source.Array:
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
	_, notInt := strconv.ParseInt(text, 10, 64)
	_, notFloat := strconv.ParseFloat(text, 64)
	switch {
	case notInt == nil:
		t.number = true
	case notFloat == nil && strings.ContainsAny(text, ".eE"):
		t.fraction = true
	default:
		t.text = true // an identity with more digits than 64 bits hold, or one that looks like a great number, such as 1e999
	}
}

// common returns the type that fits all cells; it is string if they differ.
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

// passed makes the cell that passes on a text of a column of a type.
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

// row decodes the row that was read last, as an event.
func (s *Spine) row() ([]record.Event, error) {
	events, err := s.rows.Decode(&record.Record{Partition: state.Partition{Topic: s.stream.Topic}, Timestamp: record.NoTime})
	if poison, ok := errors.AsType[*record.Poison](err); ok {
		if poison.Reason == record.MissingTimestamp {
			return nil, fmt.Errorf("column %s: the row has no time", s.time)
		}
		return nil, fmt.Errorf("column %s: %s", poison.Path, poison.Message)
	}
	return events, err
}

// appendCells encodes the cells of a row for sorting.
func appendCells(dst []byte, cells []source.Cell) []byte {
	for _, c := range cells {
		switch {
		case c.Type == source.Null, c.Type == source.Object, c.Type == source.Array:
			c.Text = nil
		case c.Text == nil:
			c.Text = []byte{} // an empty text is not null
		}
		dst = appendText(dst, c.Text)
	}
	return dst
}
