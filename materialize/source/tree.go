package source

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// node is a value in the objects that rows stand for: a cell, or an object if it has children.
type node struct {
	name     string
	path     string
	children []*node
	column   int // -1 for none
	over     int // the column of an object itself, beside those of its parts; -1 for none
	typ      cellType
	form     record.TimeForm // of a timestamp
}

// cellType says which value of a record a cell is.
type cellType uint8

const (
	isUntyped cellType = iota // no type is given: by the cell; an untyped cell is a string
	isString
	isNumber
	isBool
	isMoment  // a number if it is one, else a string
	isInstant // a timestamp that becomes a number of milliseconds
)

// cellTypes maps types of fields to types of cells; a location is an object.
var cellTypes = map[value.Type]cellType{
	value.String: isString, value.Int: isNumber, value.Float: isNumber, value.Decimal: isNumber,
	value.Bool: isBool, value.Timestamp: isMoment,
}

// newTree finds the columns that a stream needs.
func newTree(stream *record.Stream, header []string) (*node, error) {
	root := &node{column: -1, over: -1}
	wanted := func(what string, path []string, f cellType, form record.TimeForm) error {
		n := root.add(path)
		if f != isUntyped && n.typ != isString {
			n.typ, n.form = f, form
		}
		if n.column = slices.Index(header, n.path); n.column >= 0 {
			return nil
		}
		return fmt.Errorf("%s of %s: %s", what, stream.Name, spelling.Unknown("column", n.path, header))
	}
	var untimed record.TimeForm
	var errs []error
	if stream.Timestamp.Path != nil {
		errs = append(errs, wanted("the timestamp", stream.Timestamp.Path, isMoment, stream.Timestamp.Form))
	}
	for _, f := range stream.Fields {
		switch what := "field " + f.Name; {
		case f.Expr != nil:
		case f.Type == value.Location && f.Point == "":
			for _, path := range f.Paths() {
				errs = append(errs, wanted(what, path, isNumber, untimed))
			}
		case f.Type == value.Location:
			errs = append(errs, wanted(what, f.Path, isString, untimed))
		case f.Base64:
			errs = append(errs, wanted(what, f.Path, isUntyped, untimed)) // a text of digits is no number
		default:
			errs = append(errs, wanted(what, f.Path, cellTypes[f.Type], f.Form))
		}
	}
	if stream.ID != nil {
		errs = append(errs, wanted("the id", stream.ID, isUntyped, untimed))
	}
	for _, path := range stream.Match.Paths() {
		errs = append(errs, wanted("match", path, isUntyped, untimed))
	}
	errs = append(errs, root.check())
	root.findOver(header)
	return root, errors.Join(errs...)
}

// findOver finds the columns of objects themselves.
func (n *node) findOver(header []string) {
	for _, c := range n.children {
		if c.children != nil {
			c.over = slices.Index(header, c.path)
			c.findOver(header)
		}
	}
}

// covered reports whether the column of an object itself says what it is: in a file with types, it may be something else
// than an object.
func (n *node) covered(cells []Cell) bool {
	return n.over >= 0 && cells[n.over].Type != Null && cells[n.over].Type != Untyped
}

// add returns the node at a path below n, and creates it if necessary.
func (n *node) add(path []string) *node {
	for i, name := range path {
		at := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name })
		if at < 0 {
			at = len(n.children)
			n.children = append(n.children, &node{name: name, path: strings.Join(path[:i+1], "."), column: -1, over: -1})
		}
		n = n.children[at]
	}
	return n
}

// check returns an error if a column would have to be both a value and an object.
func (n *node) check() error {
	if len(n.children) > 0 && n.column >= 0 && n.path != "" {
		return fmt.Errorf("column %q is the path of a value, and of others below it", n.path)
	}
	for _, c := range n.children {
		if err := c.check(); err != nil {
			return err
		}
	}
	return nil
}

// columns appends the columns that are read.
func (n *node) columns(dst []int) []int {
	if n.children == nil {
		return append(dst, n.column)
	}
	if n.over >= 0 {
		dst = append(dst, n.over)
	}
	for _, c := range n.children {
		dst = c.columns(dst)
	}
	return dst
}

// read sets the nodes of the columns that are read, by index.
func (n *node) read(of []*node) {
	for _, column := range []int{n.column, n.over} {
		if column >= 0 {
			of[column] = n
		}
	}
	for _, c := range n.children {
		c.read(of)
	}
}

// datum returns the value of a cell that is not null. It appends to a buffer what is not the cell's text. What does not
// fit the type becomes a text, or remains a number, which the decoder refuses: it knows whether the row matters to the
// stream, and its error says that the event cannot be used.
func (n *node) datum(buffer []byte, c *Cell) (record.Datum, []byte, error) {
	number, text := record.Datum{Type: record.Number, Text: c.Text}, record.Datum{Type: record.String, Text: c.Text}
	start := len(buffer)
	switch c.Type {
	case Object:
		return record.Datum{Type: record.Object}, buffer, nil
	case Array:
		return record.Datum{Type: record.Array}, buffer, nil
	}
	switch n.typ {
	case isNumber:
		if c.Type == Number || c.Type != Bool && c.Type != Time && isJSONNumber(c.Text) {
			return number, buffer, nil
		}
	case isBool:
		return truth(c), buffer, nil
	case isMoment:
		switch {
		case c.Type == Time:
			ms := c.Ms
			if c.Local {
				ms = n.form.InZone(ms)
			}
			var quoted bool
			buffer, quoted = n.form.Append(buffer, ms)
			if number.Text, text.Text = buffer[start:], buffer[start:]; quoted {
				return text, buffer, nil
			}
			return number, buffer, nil
		case c.Type == Number || c.Type == Untyped && isJSONNumber(c.Text):
			return number, buffer, nil
		}
	case isInstant:
		buffer, err := n.appendInstant(buffer, c)
		number.Text = buffer[start:]
		return number, buffer, err
	case isUntyped:
		if c.Type == Bool {
			return truth(c), buffer, nil
		}
		if c.Type == Number {
			return number, buffer, nil
		}
	case isString:
		if c.Type == Number && bytes.ContainsAny(c.Text, ".eE") {
			return number, buffer, nil
		}
	}
	return text, buffer, nil
}

// truth returns the bool of a cell, or else its text.
func truth(c *Cell) record.Datum {
	switch strings.ToLower(string(c.Text)) {
	case "true", "1":
		return record.Datum{Type: record.True}
	case "false", "0":
		return record.Datum{Type: record.False}
	}
	return record.Datum{Type: record.String, Text: c.Text}
}

// appendInstant appends a timestamp in milliseconds.
func (n *node) appendInstant(dst []byte, c *Cell) ([]byte, error) {
	if c.Type == Time {
		return strconv.AppendInt(dst, c.Ms, 10), nil
	}
	if c.Type != Bool && isJSONNumber(c.Text) {
		return append(dst, c.Text...), nil
	}
	if ms, ok := (&record.TimeForm{Unit: "datetime"}).Parse(c.Text); ok {
		return strconv.AppendInt(dst, ms, 10), nil
	}
	return dst, fmt.Errorf("column %s: expected a time: milliseconds since 1970, RFC 3339 such as 2026-01-31T23:59:59.999Z, or 2026-01-31 23:59:59 in UTC, found %q",
		n.path, c.Text)
}

func isJSONNumber(text []byte) bool {
	return len(text) > 0 && (text[0] == '-' || value.IsDigit(text[0])) && value.ScanNumber(text, 0) == len(text)
}
