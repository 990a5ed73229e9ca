package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"text/tabwriter"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/internal/sql"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/value"
)

// The columns of a feature's table beside the entity's fields and the measures of its series.
const (
	timeColumn     = "timestamp" // the beginning of a tile, the time of an event, or the last time of a value
	keyColumn      = "key"       // the value by which the answer is split
	valueColumn    = "value"     // a member, or the field of an event
	numberColumn   = "number"    // these three are of the values of a tile
	meanColumn     = "mean"
	squaresColumn  = "squares"
	estimateColumn = "estimate" // of the distinct values of a tile
	holdsColumn    = "holds"    // the condition, for an event
)

// Selected is the answer to a query in SQL.
type Selected struct{ *sql.Result }

// Select answers a query in SQL about the state of one entity in one feature, and writes nothing. Each question mark
// stands for one of some values. Times are in ms since 1970.
func Select(ctx context.Context, s Store, registry *features.Registry, query string, values []string) (Selected, error) {
	q, err := sql.Parse(query, values)
	if err != nil {
		return Selected{}, err
	}
	f, err := registry.FeatureNamed(q.From)
	if err != nil {
		return Selected{}, err
	}
	t, err := table(ctx, s, registry, f, q)
	if err != nil {
		return Selected{}, fmt.Errorf("feature %s: %w", f.Name, err)
	}
	r, err := q.Run(t)
	return Selected{r}, err
}

// table reads the table of a feature, for the entity that a query names.
func table(ctx context.Context, s Store, registry *features.Registry, f *features.Feature, q *sql.Query) (*sql.Table, error) {
	if parts := f.Parts(); len(parts) > 0 {
		var names []string
		for _, part := range parts {
			names = append(names, part.Name)
		}
		return nil, fmt.Errorf("it has no state of its own, but is made from %s", strings.Join(names, ", "))
	}
	if f.Compared != nil {
		return nil, fmt.Errorf("its filter compares with the event that a question is about: ask weir query")
	}
	given := map[string]string{}
	for _, name := range f.By {
		var ok bool
		if given[name], ok = q.Equal(name); !ok {
			return nil, fmt.Errorf("the state of one entity can be asked for: add %s = '…' to WHERE", name)
		}
	}
	wanted, all, err := find(registry, given, []string{f.Name})
	if err != nil {
		return nil, err
	}
	g := wanted[0]
	entity, err := g.entity(given)
	if err != nil {
		return nil, err
	}
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	held, err := s.Inspect(ctx, g.any(), entity)
	if err != nil {
		return nil, err
	}
	var parts []packed.Part
	switch {
	case held.Type != "":
		err = fmt.Errorf("the state is damaged: %s", foreign(held))
	case held.ParentDamage != nil:
		err = fmt.Errorf("the state is damaged: %s", ofParent(held))
	default:
		parts, err = packed.Unpack(held.Packed, secret, all[g.name].tagged)
	}
	if err != nil {
		return nil, err
	}
	b := newBuilder(g, given, f)
	for _, p := range parts {
		for _, s := range f.Series {
			if p.Series == s && err == nil {
				err = b.add(&p)
			}
		}
	}
	return &b.table, err
}

// builder makes the table of a feature. Of one tile and key there is one row, with the columns of all series; a member has a row for
// each of its tiles, and an event one of its own.
type builder struct {
	table  sql.Table
	of     *features.LogColumns
	entity sql.Row
	at     map[cell]sql.Row
}

type cell struct {
	tile int64
	key  string
}

func newBuilder(g *group, given map[string]string, f *features.Feature) *builder {
	b := &builder{of: &f.Columns, entity: sql.Row{}, at: map[cell]sql.Row{}}
	column := func(name string, of value.Type) {
		b.table.Columns = append(b.table.Columns, sql.Column{Name: name, Type: of})
	}
	for _, key := range g.keys {
		column(key.Name, key.Type)
		b.entity[key.Name], _ = parse(key, given[key.Name])
	}
	column(timeColumn, value.Timestamp)
	column(keyColumn, value.String)
	if f.Columns.Field != nil {
		column(valueColumn, f.Columns.Field.Type)
	} else {
		column(valueColumn, value.String)
	}
	for _, s := range f.Series {
		switch {
		case !s.Measure.Single():
		case s.Measure.Counts():
			column(s.Measure.String(), value.Int)
		default:
			column(s.Measure.String(), s.Type)
		}
	}
	column(numberColumn, value.Int)
	column(meanColumn, value.Float)
	column(squaresColumn, value.Float)
	column(estimateColumn, value.Int)
	column(holdsColumn, value.Bool)
	return b
}

// row adds a row, whose columns are those of the entity at first.
func (b *builder) row() sql.Row {
	r := maps.Clone(b.entity)
	b.table.Rows = append(b.table.Rows, r)
	return r
}

// add adds the rows of a series.
func (b *builder) add(p *packed.Part) error {
	entries, _, err := packed.Entries(p.Series, p.State)
	for i := range entries {
		e := &entries[i]
		if e.Record != nil {
			if err := b.event(e.Record); err != nil {
				return err
			}
			continue
		}
		for _, tile := range e.Tiles {
			b.tile(p.Series, e, tile)
		}
	}
	return err
}

// tile adds the row of an entry in a tile.
func (b *builder) tile(s *state.Series, e *packed.Entry, tile int64) {
	at := cell{tile: tile}
	if e.Key != nil {
		at.key = *e.Key
	}
	r := b.at[at]
	if r == nil || e.Member != nil {
		r = b.row()
		b.at[at] = r
	}
	set := func(name string, v value.Value) {
		if _, ofEntity := b.entity[name]; !ofEntity {
			r[name] = v
		}
	}
	switch {
	case s.Measure.Layout().Exact():
		set(timeColumn, value.Value{Type: value.Timestamp, Num: tile})
	case s.Tile > 0: // else it is the only tile
		set(timeColumn, value.Value{Type: value.Timestamp, Num: tile * s.Tile})
	}
	if e.Key != nil {
		set(keyColumn, text(*e.Key))
	}
	if e.Member != nil {
		set(valueColumn, text(*e.Member))
	}
	if !e.Value.IsNull() {
		set(s.Measure.String(), e.Value)
	}
	if m := e.Moments; m.N > 0 {
		set(numberColumn, value.Value{Type: value.Int, Num: m.N})
		set(meanColumn, value.Value{Type: value.Float, Flt: m.MeanOf(s.Type, s.Scale)})
		set(squaresColumn, value.Value{Type: value.Float, Flt: m.Spread(s.Type, s.Scale, 1)})
	}
	if e.Registers > 0 {
		set(estimateColumn, value.Value{Type: value.Int, Num: e.Estimate})
	}
}

func text(of string) value.Value { return value.Value{Type: value.String, Str: []byte(of)} }

// event adds the row of an event, unless the feature's filter leaves it out.
func (b *builder) event(e *state.LogRecord) error {
	if b.of.Filter != nil {
		if takes, err := e.Has(*b.of.Filter); err != nil || !takes {
			return err
		}
	}
	r := b.row()
	r[timeColumn] = value.Value{Type: value.Timestamp, Num: e.Time}
	for name, of := range map[string]*state.Column{valueColumn: b.of.Field, keyColumn: b.of.Category} {
		var v value.Value
		if of == nil {
			continue
		}
		if _, err := e.Column(*of, &v); err != nil {
			return err
		}
		if !v.IsNull() {
			r[name] = v
		}
	}
	if b.of.Condition != nil {
		holds, err := e.Has(*b.of.Condition)
		if err != nil {
			return err
		}
		r[holdsColumn] = value.Value{Type: value.Bool}
		if holds {
			r[holdsColumn] = value.Value{Type: value.Bool, Num: 1}
		}
	}
	maps.Copy(r, b.entity)
	return nil
}

// WriteText writes the rows as a table.
func (s Selected) WriteText(out *strings.Builder) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join(s.Columns, "\t"))
	for _, row := range s.Rows {
		var cells []string
		for _, v := range row {
			switch v.Type {
			case value.Null:
				cells = append(cells, "NULL")
			case value.Timestamp:
				cells = append(cells, spelling.Moment(v.Num))
			default:
				cells = append(cells, visible(string(v.AppendText(nil))))
			}
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	_ = table.Flush() // a Builder takes all
}

// MarshalJSON makes an object of the names of the columns and the rows, with times in ms since 1970.
func (s Selected) MarshalJSON() ([]byte, error) {
	rows := make([][]any, len(s.Rows))
	for i, row := range s.Rows {
		for _, v := range row {
			switch {
			case v.IsNull():
				rows[i] = append(rows[i], nil)
			case v.Type == value.String || v.Type == value.Location:
				rows[i] = append(rows[i], string(v.AppendText(nil)))
			case v.Type == value.Float:
				rows[i] = append(rows[i], v.Finite().Flt)
			default:
				rows[i] = append(rows[i], json.RawMessage(v.AppendText(nil)))
			}
		}
	}
	return json.Marshal(map[string]any{"columns": s.Columns, "rows": rows})
}
