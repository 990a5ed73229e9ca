package materialize

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// node is a value in the JSON objects that the rows of a CSV become: a cell, or
// an object where it has children.
type node struct {
	name     string
	path     string
	children []*node
	column   int
	form     form
}

// form is how a cell stands in JSON.
type form uint8

const (
	isUnsaid form = iota // nobody says: a string
	isString
	isNumber
	isBool
	isMoment // a number if it is one, else a string
)

// forms are those of the types; a location is an object.
var forms = map[value.Type]form{
	value.String: isString, value.Int: isNumber, value.Float: isNumber, value.Decimal: isNumber,
	value.Bool: isBool, value.Timestamp: isMoment,
}

// newTree finds the columns that the events of a stream are read from.
func newTree(stream *record.Stream, header []string) (*node, error) {
	root := &node{}
	wanted := func(what string, path []string, f form) error {
		n := root.add(path)
		if f != isUnsaid && n.form != isString {
			n.form = f
		}
		if n.column = slices.Index(header, n.path); n.column >= 0 {
			return nil
		}
		return fmt.Errorf("%s of stream %s: %s", what, stream.Name, spelling.Unknown("column", n.path, header))
	}
	errs := []error{wanted("the timestamp", stream.Timestamp.Path, isMoment)}
	for _, f := range stream.Fields {
		switch what := "field " + f.Name; {
		case f.Expr != nil:
		case f.Type == value.Location:
			errs = append(errs, wanted(what, append(slices.Clone(f.Path), "lat"), isNumber), wanted(what, append(slices.Clone(f.Path), "lon"), isNumber))
		default:
			errs = append(errs, wanted(what, f.Path, forms[f.Type]))
		}
	}
	if stream.ID != nil {
		errs = append(errs, wanted("the id", stream.ID, isUnsaid))
	}
	for _, path := range stream.Match.Paths() {
		errs = append(errs, wanted("match", path, isUnsaid))
	}
	return root, errors.Join(append(errs, root.check())...)
}

// add finds or makes the node at a path below n.
func (n *node) add(path []string) *node {
	for i, name := range path {
		at := slices.IndexFunc(n.children, func(c *node) bool { return c.name == name })
		if at < 0 {
			at = len(n.children)
			n.children = append(n.children, &node{name: name, path: strings.Join(path[:i+1], "."), column: -1})
		}
		n = n.children[at]
	}
	return n
}

// check looks for a cell that would have to be an object, too.
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

// empty says whether all cells of the node are.
func (n *node) empty(cells []string) bool {
	if n.children == nil {
		return cells[n.column] == ""
	}
	return !slices.ContainsFunc(n.children, func(c *node) bool { return !c.empty(cells) })
}

// append appends the node's value in JSON. An object without values is null.
func (n *node) append(dst []byte, cells []string) (_ []byte, err error) {
	if n.path != "" && n.empty(cells) {
		return append(dst, "null"...), nil
	}
	if n.children == nil {
		return n.appendCell(dst, cells[n.column])
	}
	for i, c := range n.children {
		dst = append(dst, "{,"[min(i, 1)])
		dst = appendString(dst, c.name)
		dst = append(dst, ':')
		if dst, err = c.append(dst, cells); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (n *node) appendCell(dst []byte, cell string) ([]byte, error) {
	switch n.form {
	case isNumber:
		if !isJSONNumber(cell) {
			return nil, fmt.Errorf("column %s: expected a number, found %q", n.path, cell)
		}
		return append(dst, cell...), nil
	case isBool:
		switch strings.ToLower(cell) {
		case "true", "1":
			return append(dst, "true"...), nil
		case "false", "0":
			return append(dst, "false"...), nil
		}
		return nil, fmt.Errorf("column %s: expected true or false, found %q", n.path, cell)
	case isMoment:
		if isJSONNumber(cell) {
			return append(dst, cell...), nil
		}
	}
	return appendString(dst, cell), nil
}

func isJSONNumber(text string) bool {
	return (text[0] == '-' || '0' <= text[0] && text[0] <= '9') && json.Valid([]byte(text)) && strings.TrimSpace(text) == text
}

// appendString appends a JSON string. What is not UTF-8 is left as it is: it is
// for the decoder to say so.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
