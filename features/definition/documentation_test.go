package definition

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// The page about functions is generated from the table of functions. Windows, options and multi-hop
// features have pages of their own, whose examples and figures the tests below check.
const documentationHead = `# Functions

A feature is one line, ` + "`FUNCTION(window, stream, arguments…, name=value…)`" + `, or a mapping with the same names: ` + "`function`, `stream`,\n`field`, `by`, `window`" + ` and the options. In one line, ` + "`by`" + ` and ` + "`field`" + `
may also be named, as in ` + "`COUNT_DISTINCT(30d, login, by=device_id, field=user_id)`" + `; ` + "`weir explain`" + ` says in words what a feature
computes: *count_distinct of user_id for each device_id*. Function names are case-insensitive. See also
[windows](windows.md) and [options and limits](feature-options.md).

Each section has the form of a function, an example and, if it has one, the form as a [multi-hop feature](multi-hop.md). Answers are exact
unless it says otherwise. In the table,

- *number* is an int, a float or a decimal.
- *from* says what the function is [answered from](feature-options.md#what-is-kept). With ` + "`tile: exact`" + ` it is always the log.
- *without events* is the answer where the window holds nothing to answer from.

This page is generated from the table of functions (` + "`aggregate.All`" + `): ` + "`go test ./features/definition -run Documentation -update`" + `.

`

// documentedWindow is a row of the page about windows: one line, long form and meaning.
var documentedWindow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| .+ \\|$")

// The forms that the page calls the same window are the same window.
func TestDocumentedWindows(t *testing.T) {
	rows := documentedWindow.FindAllStringSubmatch(page(t, "windows.md"), -1)
	if len(rows) < 10 {
		t.Fatalf("docs/windows.md has only %d windows in two forms", len(rows))
	}
	for _, row := range rows {
		oneLine, long := row[1], row[2]
		r, err := parse(documentationStreams +
			"  f: COUNT(" + oneLine + ", transaction, user)\n  g: {function: count, stream: transaction, by: user, window: " + long + "}\n")
		if err != nil {
			t.Errorf("%s: %v", oneLine, err)
			continue
		}
		if f, g := r.Features[0], r.Features[1]; f.Definition != g.Definition || f.Window.String() != oneLine {
			t.Errorf("%s compiles to %s, but %s to %s", oneLine, f.Definition, long, g.Definition)
		}
	}
}

// page is a page of the documentation.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documentationStreams are the streams of the examples.
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
	b.WriteString("## All functions\n\n| function | answers with | field | result | without events | from |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, k := range aggregate.All {
		s := k.Spec()
		none := "null"
		if !s.Neutral.IsNull() {
			none = string(s.Neutral.AppendText(nil))
		}
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s | %s | %s | %s |\n", called(s), section(s), s.Title, documentedField(s), documentedResult(s), none, answeredFrom(k))
	}
	noted := map[string]aggregate.Spec{}
	for _, k := range aggregate.All {
		document(&b, k.Spec(), noted)
	}
	return b.String()
}

// section is the anchor of the section of a function.
func section(s aggregate.Spec) string { return strings.ReplaceAll(called(s), " ", "-") }

// document writes the section of one function: what the table of all functions does not say. A note that several functions
// share stands once, with the first of them, by which noted finds it.
func document(b *strings.Builder, s aggregate.Spec, noted map[string]aggregate.Spec) {
	fmt.Fprintf(b, "\n## %s\n\n```\n%s\n%s\n", called(s), expectedForm(s), s.Example)
	if s.MultiHop {
		fmt.Fprintln(b, flatForm(s))
	}
	b.WriteString("```\n")
	if first, written := noted[s.Note]; written {
		fmt.Fprintf(b, "\nAs [%s](#%s).\n", called(first), section(first))
	} else if s.Note != "" {
		noted[s.Note] = s
		b.WriteString("\n" + s.Note + "\n")
	}
	if !s.Exact && s.StandardError != 0 {
		fmt.Fprintf(b, "\nAn estimate: its standard error is %s%%.\n", strconv.FormatFloat(100*s.StandardError, 'g', 3, 64))
	}
	for n, p := range s.Parameters {
		if n == 0 {
			b.WriteString("\n")
		}
		text := wanted(p)
		if p.Default != "" {
			text += "; by default " + p.Default
		}
		fmt.Fprintf(b, "- `%s`: %s\n", p.Name, text)
	}
}

// documentedField says of which types the field of a function may be, for those that have one.
func documentedField(s aggregate.Spec) string {
	switch {
	case s.Types == nil:
		return ""
	case len(s.Types) == 3 && !slices.ContainsFunc(s.Types, func(t value.Type) bool { return t != value.Int && t != value.Float && t != value.Decimal }):
		return "number"
	case len(s.Types) == 7:
		return "any"
	case len(s.Types) == 6 && !slices.Contains(s.Types, value.Location):
		return "any but location"
	}
	var names []string
	for _, t := range s.Types {
		names = append(names, t.String())
	}
	return spelling.Alternatives(names)
}

func documentedResult(s aggregate.Spec) string {
	one := "the type of the field"
	if s.Result != value.Null {
		one = s.Result.String()
	}
	if s.Span {
		one += "; of timestamps an int"
	}
	switch s.Shape {
	case aggregate.List:
		return "list of values of " + one
	case aggregate.Counts:
		return "list of `value`, of " + one + ", and `count`"
	case aggregate.Bins:
		return "list of `from` and `to`, of " + one + ", and `count`"
	default:
		return one
	}
}

func answeredFrom(k aggregate.Function) string {
	tiled, ok := k.(aggregate.Mergeable)
	if !ok {
		return "log"
	}
	text := tiled.Measures(aggregate.Call{})[0].Layout().String()
	if keyed, ok := k.(aggregate.Keyed); ok {
		if keyed.Keys(aggregate.Call{}).Name == "" {
			text += " by value"
		} else {
			text += " by range"
		}
	}
	text += " or log"
	for _, t := range k.Spec().LogTypes {
		text += "; log for a " + t.String()
	}
	return text
}

func TestDocumentationIsCurrent(t *testing.T) {
	const file = "../../docs/features.md"
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
		t.Errorf("docs/features.md (-want +got), rewritten by go test -update:\n%s", diff)
	}
}

// Every example is a feature with its function, in canonical form.
func TestDocumentedExamples(t *testing.T) {
	for _, k := range aggregate.All {
		s := k.Spec()
		r, err := parse(documentationStreams + "  f: >-\n    " + s.Example + "\n")
		if err != nil {
			t.Errorf("%s: %v", called(s), err)
			continue
		}
		if f := r.Features[0]; f.Definition != s.Example || f.Function != k {
			t.Errorf("%s: the example %s compiles to %s", called(s), s.Example, f.Definition)
		}
		if s.Title == "" || slices.Contains(s.Types, value.Null) {
			t.Errorf("%s is not described", called(s))
		}
	}
}

// Checks the example and the figures of the page about multi-hop features.
func TestDocumentedMultiHop(t *testing.T) {
	text := page(t, "multi-hop.md")
	for _, words := range []string{
		fmt.Sprintf("may be %s.", spelling.Alternatives(throughNames())),
		fmt.Sprintf("%d by default and %d at most", defaultFanOut, maxFanOut),
	} {
		if !strings.Contains(text, words) {
			t.Errorf("docs/multi-hop.md does not contain %q", words)
		}
	}
	_, example, _ := strings.Cut(text, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	r, err := parse(documentationStreams + "  " + strings.ReplaceAll(example, "\n", "\n  "))
	if err != nil {
		t.Fatal(err)
	}
	if one, long := feature(t, r, "device_users_spent"), feature(t, r, "device_users_spent_too"); one.Definition != long.Definition {
		t.Errorf("the long form compiles to %s, one line to %s", long.Definition, one.Definition)
	}
}
