package definition

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Finding is one mistake in definitions, and where it is.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line"`   // from 1; 0 for the whole file
	Column  int    `json:"column"` // in characters, from 1
	Message string `json:"message"`
}

// String formats a finding as file:line:column: message.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Message
	}
	return fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Column, f.Message)
}

// Findings lists all mistakes in definitions, by file, line and column. It is the error of Load.
type Findings []Finding

// Error lists the findings, one on each line.
func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, finding := range f {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

// sorted sorts findings by location and drops repetitions, which aliases of one node cause.
func (f Findings) sorted() Findings {
	slices.SortStableFunc(f, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Message, b.Message),
		)
	})
	return slices.Compact(f)
}

// location is a position in the files of definitions.
type location struct {
	file         string
	line, column int
	macro        string // the macro whose expansion it is in, if any
}

func (p location) String() string { return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column) }
