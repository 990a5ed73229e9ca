package sql

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/value"
)

// Column is a column of a table. Its values have the type, or are null.
type Column struct {
	Name string
	Type value.Type
}

// Table is a table. Rows lack the columns in which they are null.
type Table struct {
	Columns []Column
	Rows    []Row
}

// Row is a row of a table, by columns.
type Row map[string]value.Value

// Result is what a query answers.
type Result struct {
	Columns []string
	Rows    [][]value.Value
}

// column finds a column.
func (t *Table) column(name string) (*Column, error) {
	var names []string
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i], nil
		}
		names = append(names, t.Columns[i].Name)
	}
	return nil, fmt.Errorf("there is no column %q; there are %s", name, strings.Join(names, ", "))
}

// Run answers the query about a table.
func (q *Query) Run(t *Table) (*Result, error) {
	if err := q.check(t); err != nil {
		return nil, err
	}
	rows, err := q.filtered(t)
	if err != nil {
		return nil, err
	}
	if len(q.group) == 0 && !slices.ContainsFunc(q.items, item.isFunction) {
		return q.project(t, rows), nil
	}
	r := &Result{}
	for _, i := range q.items {
		r.Columns = append(r.Columns, i.name)
	}
	for _, g := range q.grouped(rows) {
		var cells []value.Value
		for _, i := range q.items {
			cells = append(cells, i.of(g))
		}
		r.Rows = append(r.Rows, cells)
	}
	return r, nil
}

func (i item) isFunction() bool { return i.function != "" }

// check checks that the query can be asked about a table.
func (q *Query) check(t *Table) error {
	for _, name := range q.group {
		if _, err := t.column(name); err != nil {
			return err
		}
	}
	grouping := len(q.group) > 0 || slices.ContainsFunc(q.items, item.isFunction)
	for _, i := range q.items {
		if i.column == "*" && (i.function != "" || !grouping) {
			continue
		}
		if grouping && i.function == "" && !slices.Contains(q.group, i.column) {
			return fmt.Errorf("%s has many values where functions take all rows together: name it in GROUP BY", cmp.Or(i.name, i.column))
		}
		c, err := t.column(i.column)
		if err != nil {
			return err
		}
		if i.function == "sum" && !c.Type.Numeric() {
			return fmt.Errorf("%s: %s is a %s", i.name, c.Name, c.Type)
		}
	}
	return nil
}

// filtered returns the rows for which all conditions hold.
func (q *Query) filtered(t *Table) ([]Row, error) {
	rows := slices.Clone(t.Rows)
	for _, c := range q.where {
		of, err := t.column(c.column)
		if err != nil {
			return nil, err
		}
		compare, err := comparison(of.Type, c.literal)
		if err != nil {
			return nil, fmt.Errorf("%s %s '%s': %w", c.column, c.operator, c.literal, err)
		}
		rows = slices.DeleteFunc(rows, func(r Row) bool {
			v, ok := r[c.column]
			return !ok || !holds(compare(v), c.operator)
		})
	}
	return rows, nil
}

func holds(order int, operator string) bool {
	switch operator {
	case "=":
		return order == 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	default:
		return order != 0
	}
}

// comparison returns a function that orders values of a type against a literal.
func comparison(of value.Type, literal string) (func(value.Value) int, error) {
	switch {
	case of == value.Timestamp:
		at, err := moment(literal)
		return func(v value.Value) int { return cmp.Compare(v.Num, at) }, err
	case of.Numeric():
		parsed, ok := value.ParseNumber([]byte(literal))
		with, whole := parsed.Decimal()
		if !ok || !whole {
			return nil, fmt.Errorf("it is not a number of at most %d digits", value.MaxScale)
		}
		return func(v value.Value) int {
			if v.Type == value.Float {
				return cmp.Compare(v.Flt, with.Float64())
			}
			return value.CompareExact(&v, &with)
		}, nil
	default:
		return func(v value.Value) int { return bytes.Compare(v.AppendText(nil), []byte(literal)) }, nil
	}
}

// moment returns a time in ms since 1970.
func moment(text string) (int64, error) {
	for _, layout := range [...]string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UnixMilli(), nil
		}
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("it is not a time such as 2026-01-31T10:00:00Z, or in milliseconds since 1970")
	}
	return ms, nil
}

// project returns columns of rows; of * those in which some row has a value, if there are rows.
func (q *Query) project(t *Table, rows []Row) *Result {
	r := &Result{}
	for _, i := range q.items {
		if i.column != "*" {
			r.Columns = append(r.Columns, i.column)
			continue
		}
		for _, c := range t.Columns {
			if len(rows) == 0 || slices.ContainsFunc(rows, func(r Row) bool { _, ok := r[c.Name]; return ok }) {
				r.Columns = append(r.Columns, c.Name)
			}
		}
	}
	for _, row := range rows {
		var cells []value.Value
		for _, name := range r.Columns {
			cells = append(cells, row[name])
		}
		r.Rows = append(r.Rows, cells)
	}
	return r
}

// grouped groups rows that have the same values in the columns of GROUP BY, in the order of their first rows. Without such columns
// there is one group.
func (q *Query) grouped(rows []Row) (groups [][]Row) {
	if len(q.group) == 0 {
		return [][]Row{rows}
	}
	index := map[string]int{}
	for _, r := range rows {
		var key []byte
		for _, name := range q.group {
			v := r[name]
			key = strconv.AppendQuote(append(key, byte(v.Type)), string(v.AppendText(nil)))
		}
		at, known := index[string(key)]
		if !known {
			at = len(groups)
			index[string(key)] = at
			groups = append(groups, nil)
		}
		groups[at] = append(groups[at], r)
	}
	return groups
}

// of computes the item of a group of rows.
func (i *item) of(rows []Row) (all value.Value) {
	if i.function == "" {
		return rows[0][i.column] // as in all rows of the group
	}
	count, met := int64(0), map[string]bool{}
	var floats value.FloatSum // rounded once
	for _, r := range rows {
		v, ok := r[i.column]
		if i.column != "*" && !ok {
			continue
		}
		if i.distinct {
			text := string(v.AppendText(nil))
			if met[text] {
				continue
			}
			met[text] = true
		}
		count++
		floats.Add(v.Flt)
		switch {
		case i.function == "count":
		case all.IsNull():
			all = v
		case i.function == "sum":
			all = value.Add(all, v)
		case value.Compare(v, all) < 0 == (i.function == "min"):
			all = v
		}
	}
	if i.function == "count" {
		return value.Value{Type: value.Int, Num: count}
	}
	if i.function == "sum" && all.Type == value.Float {
		all.Flt = floats.Float()
	}
	return all
}
