package features

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/kinds"
)

// The page of the functions is written from the table of the kinds; its words
// about all of them stand here.
const documentationHead = `# Functions

Written by ` + "`go test ./features -run Documentation -update`" + ` from the table of the functions (` + "`kinds.All`" + `).

A feature is ` + "`FUNCTION(window, stream, arguments…, name=value…)`" + `, or a mapping with the same names: ` + "`function`, `stream`,\n`field`, `by`, `window`" + ` and the options. Names of functions are case-blind.

- **Nulls** are those of SQL: a function over a field passes over the events that lack it; one that takes no field counts
  them. An event that lacks one of the by-fields belongs to no entity.
- **Order** is that of the events' times; of one millisecond, that in which they came.
- **Nothing found**: where the window holds nothing to answer from, the answer is the value *without events*, with the
  status NOT_FOUND. Where it does, but that is too little for a value, it is null with NULL_VALUE.
- **From**: *tiles* are numbers for each stretch of time, *members* sets and *sketches* HyperLogLogs for each; *last seen*
  is the time at which each value was met last. With ` + "`tile: exact`" + ` every function is answered from the *log* of the entity's
  events, and those that have nothing else always are: their window is exact to the millisecond. The log of an entity
  keeps as many events as the greatest ` + "`max`" + ` of its features says (1000 by default), and an answer that lacks some is
  ` + "`capped`" + `.
- **Exact** values have no error of their own: ints, decimals and times are exact, floats are rounded as floats are.
- **` + "`where`" + `** filters the events of every function; it is not the same as ` + "`condition`" + `, which a function looks at.

`

// documentationStreams are what the examples stand on.
const documentationStreams = `
streams:
  transaction:
    topic: transactions
    timestamp: ts
    fields: {user: string, device: string, merchant: string, status: string, amount: decimal, place: location}
features:
`

func documentation() string {
	var b strings.Builder
	b.WriteString(documentationHead)
	b.WriteString("| function | answers with | from |\n| --- | --- | --- |\n")
	for _, k := range kinds.All {
		s := k.Spec()
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", called(s), strings.ReplaceAll(called(s), " ", "-"), s.Title, answeredFrom(k))
	}
	for _, k := range kinds.All {
		document(&b, k)
	}
	return b.String()
}

// document writes the section of one kind.
func document(b *strings.Builder, k kinds.Kind) {
	s := k.Spec()
	fmt.Fprintf(b, "\n## %s\n\n%s%s.", called(s), strings.ToUpper(s.Title[:1]), s.Title[1:])
	if s.Note != "" {
		b.WriteString(" " + s.Note)
	}
	fmt.Fprintf(b, "\n\n```\n%s\n```\n\n| | |\n| --- | --- |\n", s.Example)
	row := func(name, text string) { fmt.Fprintf(b, "| %s | %s |\n", name, text) }
	row("form", "`"+expectedForm(s)+"`")
	if s.Types != nil {
		var names []string
		for _, t := range s.Types {
			names = append(names, t.String())
		}
		row("field", alternatives(names))
	}
	for _, p := range s.Parameters {
		text := wanted(p)
		if p.Default != "" {
			text += "; by default " + p.Default
		}
		row("`"+p.Name+"`", text)
	}
	row("result", documentedResult(s))
	neutral := "null"
	if !s.Neutral.IsNull() {
		neutral = string(s.Neutral.AppendText(nil))
	}
	row("without events", neutral)
	exactness := "yes"
	if !s.Exact {
		exactness = "no: standard error " + strconv.FormatFloat(100*s.StandardError, 'g', 3, 64) + "%"
	}
	row("exact", exactness)
	row("from", answeredFrom(k))
}

func documentedResult(s kinds.Spec) string {
	one := "the type of the field"
	if s.Result != kinds.Null {
		one = s.Result.String()
	}
	switch s.Shape {
	case kinds.List:
		return "list of values of " + one
	case kinds.Counts:
		return "list of `value`, of " + one + ", and `count`"
	case kinds.Bins:
		return "list of `from` and `to`, of " + one + ", and `count`"
	default:
		return one
	}
}

func answeredFrom(k kinds.Kind) string {
	tiled, ok := k.(kinds.Tiled)
	if !ok {
		return "log"
	}
	text := stateNames[tiled.Measures(kinds.Call{})[0].State()] + " or log"
	for _, t := range k.Spec().LogTypes {
		text += "; log for a " + t.String()
	}
	return text
}

func TestDocumentationIsCurrent(t *testing.T) {
	const file = "../docs/features.md"
	want := documentation()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/features.md (-want +got), written anew by go test -update:\n%s", diff)
	}
}

// Every example is a feature of its kind, in canonical form.
func TestDocumentedExamples(t *testing.T) {
	for _, k := range kinds.All {
		s := k.Spec()
		r, err := Parse("example", []byte(documentationStreams+"  f: >-\n    "+s.Example+"\n"))
		if err != nil {
			t.Errorf("%s: %v", called(s), err)
			continue
		}
		if f := r.Features[0]; f.Definition != s.Example || f.Kind != k {
			t.Errorf("%s: %s defines %s", called(s), s.Example, f.Definition)
		}
		if s.Title == "" || slices.Contains(s.Types, kinds.Null) {
			t.Errorf("%s is not described", called(s))
		}
	}
}
