package materialize

import (
	"errors"
	"fmt"

	"github.com/weir-stream/weir/value"
)

// output writes the rows of blocks.
type output struct {
	*timeline
	writer Writer
	reader *reader
	cells  []Cell
}

func (t *timeline) newOutput(w Writer) *output {
	o := &output{timeline: t, writer: w, reader: t.newReader(), cells: make([]Cell, len(t.Columns))}
	for i, s := range t.streams {
		o.reader.wanted[i] = make([]bool, len(s.Fields))
		for c := range t.Columns {
			if t.Columns[c].of == ofEvent && s == t.Stream {
				o.reader.wanted[i][t.Columns[c].at] = true
			}
		}
	}
	return o
}

func (o *output) write(b *block) error {
	for i, n := range b.rows {
		m, err := b.moment(o.reader, int(n))
		if err != nil {
			return err
		}
		if err := o.fill(&m, b, b.row(int32(i))); err != nil {
			return o.at(b, int(n), err)
		}
		err = o.writer.Write(o.cells)
		if _, about := errors.AsType[*cellError](err); about {
			return o.at(b, int(n), err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// fill makes the cells of a row from its answers.
func (o *output) fill(m *moment, b *block, answers []cell) error {
	e, next := m.row(o.Stream), 0
	for i := range o.Columns {
		c := &o.Columns[i]
		switch c.of {
		case identity:
			o.cells[i] = Cell{Value: value.Value{Type: value.String, Str: e.ID}}
		case eventTime:
			o.cells[i] = Cell{Value: value.Value{Type: value.Timestamp, Num: e.Time}}
		case ofEvent:
			o.cells[i] = Cell{Value: e.Values[c.at]}
		case passedOn:
			text := m.cells.text()
			if m.cells.err != nil {
				return m.cells.err
			}
			o.cells[i] = Cell{}
			if text == nil {
				continue
			}
			var err error
			if o.cells[i], err = passed(c.field.Type, text); err != nil {
				return fmt.Errorf("column %s: %w", c.Name, err)
			}
		default:
			answers[next].get(&o.cells[i], b.types[next], b.long)
			next++
		}
	}
	return nil
}
