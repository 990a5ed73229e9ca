package features

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-stream/weir/internal/spelling"
)

// Finding is one thing that is wrong with definitions, and where.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 where the whole file is meant
	Column  int    `json:"column"` // in characters, from 1
	Message string `json:"message"`
}

// String is file:line:column: message.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Findings is all that is wrong with definitions, by file, line and column. It
// is the error of Load.
type Findings []Finding

// Error is the findings, one a line.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, finding := range f {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

// sorted puts findings into the order of their places and drops repetitions,
// which aliases of one node make.
func (f Findings) sorted() Findings {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(f)
}

// place is where something stands in the definitions.
type place struct {
	file         string
	line, column int
	macro        string // in whose expansion, if any
}

func (p place) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// unknown words the finding that a name is none of those known.
func unknown(what, name string, known []string) string {
	return unknownIn("", what, name, known)
}

// unknownIn is unknown with the thing that lacks the name, such as " in x".
func unknownIn(in, what, name string, known []string) string {
	message := fmt.Sprintf("unknown %s %q%s", what, name, in)
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", message, near)
	}
	if len(known) == 0 || len(known) > 30 {
		return message
	}
	return message + "; known: " + strings.Join(slices.Sorted(slices.Values(known)), ", ")
}

// Unknown says of a name that nothing has it, and which one may be meant: what
// it should be the name of, and where, such as " in x", make the message.
func Unknown(what, name, in string, known []string) string { return unknownIn(in, what, name, known) }

// nearest is the known name that a misspelt one most likely stands for, empty
// where none is near enough.
func nearest(name string, known []string) string {
	best, least := "", (len(name)+2)/3+1
	for _, k := range slices.Sorted(slices.Values(known)) {
		if d := spelling.Distance(strings.ToLower(name), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// alternatives lists names for a message: a, b or c.
func alternatives(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
