package featuretest

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/tables"
)

// tableRow is a row of a table.
type tableRow struct {
	node   *yaml.Node
	table  *yaml.Node // its name
	fields *yaml.Node
	at     int64 // since when it holds, in milliseconds
}

// fromTheBeginning is since when rows hold that do not say it, in milliseconds.
var fromTheBeginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()

// rows reads {TABLE: [{FIELD: VALUE, …, at: …}, …]}.
func (f *file) rows(n *yaml.Node) (rows []tableRow) {
	if n.Kind != yaml.MappingNode && !isNothing(n) {
		f.find(n, "tables: expected tables, each with a list of its rows")
	}
	each(n, func(key, list *yaml.Node) {
		for _, row := range f.list(list, "the rows of table "+key.Value) {
			row = resolved(row)
			if row.Kind != yaml.MappingNode {
				f.find(row, "expected a row: fields with their values, such as {merchant_id: m1, category: toys}")
				continue
			}
			r := tableRow{node: row, table: key, fields: row, at: fromTheBeginning}
			if at := member(row, "at"); at != nil {
				r.at = f.moment(at, "at")
			}
			rows = append(rows, r)
		}
	})
	return rows
}

// tablesOf makes the tables of a test: all those of the definitions, with the rows that the file gives them.
func (f *file) tablesOf(r *features.Registry, rows []tableRow) *tables.Set {
	var all []*tables.Contents
	for _, t := range r.Tables {
		c := tables.NewDecoded(t, record.NewJSONDecoder([]*record.Stream{t.Rows})).Keeping(tables.History)
		for i := range rows {
			if row := &rows[i]; row.table.Value == t.Name {
				f.take(c, t, row)
			}
		}
		all = append(all, c)
	}
	return tables.Fixed(all...)
}

// checkTables finds rows of tables that the definitions do not have.
func (f *file) checkTables(r *features.Registry, rows []tableRow) {
	var known []string
	for _, t := range r.Tables {
		known = append(known, t.Name)
	}
	var found []*yaml.Node
	for i := range rows {
		if name := rows[i].table; !slices.Contains(known, name.Value) && !slices.Contains(found, name) {
			found = append(found, name)
			f.find(name, "%s", spelling.Unknown("table", name.Value, known))
		}
	}
}

// take adds a row to its table.
func (f *file) take(c *tables.Contents, t *features.Table, row *tableRow) {
	o := newObject()
	if t.Rows.Timestamp.Path != nil {
		o.set(t.Rows.Timestamp.Path, t.Rows.Timestamp.Form.JSON(row.at))
	}
	if t.List {
		o.set([]string{"list"}, string(query.AppendString(nil, t.Name)))
	}
	var err error
	each(row.fields, func(key, v *yaml.Node) {
		if key.Value == "at" || err != nil {
			return
		}
		err = f.put(o, "table "+t.Name, t.Rows, key.Value, v)
	})
	if err != nil {
		f.find(row.node, "%v", err)
		return
	}
	rec := &record.Record{Partition: state.Partition{Topic: t.Rows.Topic}, Timestamp: row.at, Value: o.appendJSON(nil)}
	_, before := c.Rows()
	bad, err := c.Take(rec)
	_, after := c.Rows()
	switch {
	case err != nil:
		f.find(row.node, "%v", err)
	case bad != nil:
		f.find(row.node, "the row cannot be used: %v", bad)
	case after == before:
		f.find(row.node, "table %s does not take the row: its match is %s", t.Name, t.Rows.Match.Text)
	}
}
