package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
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
