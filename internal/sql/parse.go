// Package sql answers queries in a small part of SQL about tables that are in memory: SELECT columns or functions FROM a table
// WHERE columns are compared with literals AND so on, GROUP BY columns.
package sql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Query is a parsed query.
type Query struct {
	From  string // the table
	items []item
	where []condition
	group []string
}

// item is a column of the result: one of the table, * for all, or a function of one.
type item struct {
	name     string // as it was written
	function string // empty for none
	distinct bool
	column   string
}

// condition compares a column with a literal.
type condition struct{ column, operator, literal string }

// Equal returns the literal that a column must be equal to.
func (q *Query) Equal(column string) (literal string, ok bool) {
	i := slices.IndexFunc(q.where, func(c condition) bool { return c.column == column && c.operator == "=" })
	if i < 0 {
		return "", false
	}
	return q.where[i].literal, true
}

// Grammar says what queries there are.
const Grammar = "SELECT columns, count(*), count(column), count(DISTINCT column), sum(column), min(column) or max(column) FROM feature " +
	"WHERE column = 'text' AND … GROUP BY columns, with the comparisons = <> < <= > >="

// Error is the error about a query that is none.
type Error struct {
	At        int // byte of the query from which on it is not understood
	Want, Got string
}

func (e *Error) Error() string {
	got := e.Got
	if got == "" {
		got = "the end"
	}
	return fmt.Sprintf("at character %d: want %s, got %s; a query is %s", e.At+1, e.Want, got, Grammar)
}

// token is a word, a "quoted word", a 'text', a number, or an operator.
var token = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9_.]*)|"([^"]+)"|'((?:[^']|'')*)'|(-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)|(<>|!=|<=|>=|[=<>(),*?;]))`)

// parser reads a query from its beginning on.
type parser struct {
	text string
	at   int
	args []string // for the question marks
	used int
}

// next returns the next token, by its kind as an index of token's groups, and what comes after it.
func (p *parser) next() (kind int, content string, after int) {
	rest := strings.TrimLeft(p.text[p.at:], " \t\r\n")
	p.at = len(p.text) - len(rest)
	of := token.FindStringSubmatchIndex(rest)
	for kind := 1; 2*kind < len(of); kind++ {
		if of[2*kind] >= 0 {
			return kind, rest[of[2*kind]:of[2*kind+1]], p.at + of[1]
		}
	}
	return 0, "", p.at
}

const (
	aWord = iota + 1
	aQuotedWord
	aText
	aNumber
	anOperator
)

// take takes a keyword or an operator if it comes next.
func (p *parser) take(wanted string) bool {
	kind, content, after := p.next()
	if (kind != aWord && kind != anOperator) || !strings.EqualFold(content, wanted) {
		return false
	}
	p.at = after
	return true
}

func (p *parser) want(what string) *Error {
	got := p.text[p.at:]
	if _, _, after := p.next(); after > p.at {
		got = p.text[p.at:after]
	}
	return &Error{At: p.at, Want: what, Got: got}
}

func (p *parser) expect(wanted string) error {
	if !p.take(wanted) {
		return p.want(wanted)
	}
	return nil
}

// name takes the name of a table or column.
func (p *parser) name(what string) (string, error) {
	kind, content, after := p.next()
	if kind != aWord && kind != aQuotedWord {
		return "", p.want(what)
	}
	p.at = after
	return content, nil
}

// Parse parses a query, in which each question mark stands for the next of some texts.
func Parse(query string, args []string) (*Query, error) {
	p := &parser{text: query, args: args}
	q := &Query{}
	err := p.query(q)
	switch {
	case err != nil:
		return nil, err
	case p.used < len(args):
		return nil, fmt.Errorf("%d values are given, and the query has %d question marks", len(args), p.used)
	}
	return q, nil
}

func (p *parser) query(q *Query) (err error) {
	if err := p.expect("SELECT"); err != nil {
		return err
	}
	for more := true; more; more = p.take(",") {
		i, err := p.item()
		if err != nil {
			return err
		}
		q.items = append(q.items, i)
	}
	if err := p.expect("FROM"); err != nil {
		return err
	}
	if q.From, err = p.name("the name of a feature"); err != nil {
		return err
	}
	if p.take("WHERE") {
		for more := true; more; more = p.take("AND") {
			c, err := p.condition()
			if err != nil {
				return err
			}
			q.where = append(q.where, c)
		}
	}
	if p.take("GROUP") {
		if err := p.expect("BY"); err != nil {
			return err
		}
		for more := true; more; more = p.take(",") {
			column, err := p.name("the name of a column")
			if err != nil {
				return err
			}
			q.group = append(q.group, column)
		}
	}
	p.take(";")
	if p.next(); p.at < len(p.text) {
		return p.want("the end")
	}
	return nil
}

// functions are those of columns.
var functions = []string{"count", "sum", "min", "max"}

func (p *parser) item() (i item, err error) {
	if p.take("*") {
		return item{column: "*"}, nil
	}
	kind, _, _ := p.next()
	begin := p.at
	if i.column, err = p.name("a column, a function or *"); err != nil {
		return i, err
	}
	if kind == aWord && p.take("(") {
		i.function = strings.ToLower(i.column)
		if !slices.Contains(functions, i.function) {
			p.at = begin
			return i, p.want("one of the functions " + strings.Join(functions, ", "))
		}
		i.distinct = i.function == "count" && p.take("DISTINCT")
		if i.function == "count" && !i.distinct && p.take("*") {
			i.column = "*"
		} else if i.column, err = p.name("the name of a column"); err != nil {
			return i, err
		}
		if err := p.expect(")"); err != nil {
			return i, err
		}
	}
	i.name = p.text[begin:p.at]
	if i.function == "" {
		i.name = i.column
	}
	return i, nil
}

func (p *parser) condition() (c condition, err error) {
	if c.column, err = p.name("the name of a column"); err != nil {
		return c, err
	}
	kind, content, after := p.next()
	if kind != anOperator || !slices.Contains([]string{"=", "<>", "!=", "<", "<=", ">", ">="}, content) {
		return c, p.want("a comparison")
	}
	c.operator, p.at = content, after
	switch kind, content, after = p.next(); {
	case kind == aText:
		c.literal = strings.ReplaceAll(content, "''", "'")
	case kind == aNumber:
		c.literal = content
	case kind == anOperator && content == "?":
		if p.used == len(p.args) {
			return c, fmt.Errorf("%s %s ?: no value is given for it", c.column, c.operator)
		}
		c.literal = p.args[p.used]
		p.used++
	default:
		return c, p.want("a 'text', a number or ?")
	}
	p.at = after
	return c, nil
}
