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

Distinct values come last in a [feature](definitions.md#features): ` + "`COUNT_DISTINCT(30d, login, device_id, user_id)`" + ` counts users for each
device, as ` + "`COUNT_DISTINCT(30d, login, by=device_id, field=user_id)`" + ` does; ` + "`weir explain`" + ` says it in words. Names of functions are
case-insensitive.

Answers are exact unless it says otherwise. *Number* is an int, a float or a decimal; *without events* the answer where the window has nothing
to answer from; *from* what the function is [answered from](feature-options.md#what-is-kept), with ` + "`tile: exact`" + ` always the log.

This page is generated: ` + "`go test ./features/definition -run Documentation -update`" + `.

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
	b.WriteString("## All functions\n\n| example | answers with, of the field | field | result | without events | from |\n|---|---|---|---|---|---|\n")
	described := map[string]string{}
	for _, k := range aggregate.All {
		s := k.Spec()
		name, text := "`"+s.Example+"`", detail(s)
		if first, ok := described[text]; ok {
			name = fmt.Sprintf("[%s](#%s)", name, first)
		} else if text != "" {
			described[text] = section(s)
			name = fmt.Sprintf("[%s](#%s)", name, section(s))
		}
		none := "null"
		if !s.Neutral.IsNull() {
			none = string(s.Neutral.AppendText(nil))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", name, strings.Replace(s.Title, " of a field", "", 1), documentedField(s), documentedResult(s), none, answeredFrom(k))
	}
	noted := map[string]aggregate.Spec{}
	for _, k := range aggregate.All {
		s := k.Spec()
		text := detail(s)
		if described[text] != section(s) {
			continue
		}
		if first, ok := noted[s.Note]; ok {
			text = strings.Replace(text, s.Note, fmt.Sprintf("As [%s](#%s).", called(first), section(first)), 1)
		} else if s.Note != "" {
			noted[s.Note] = s
		}
		fmt.Fprintf(&b, "\n## %s\n%s", called(s), text)
	}
	return b.String()
}

// section is the anchor of the section of a function.
func section(s aggregate.Spec) string { return strings.ReplaceAll(called(s), " ", "-") }

// detail says of a function what the table of all functions does not say, if anything.
func detail(s aggregate.Spec) string {
	var b strings.Builder
	if s.Note != "" {
		b.WriteString("\n" + s.Note + "\n")
	}
	if !s.Exact && s.StandardError != 0 {
		fmt.Fprintf(&b, "\nAn estimate: its standard error is %s%%.\n", strconv.FormatFloat(100*s.StandardError, 'g', 3, 64))
	}
	for n, p := range s.Parameters {
		if n == 0 {
			b.WriteString("\n")
		}
		text := wanted(p)
		if p.Default != "" {
			text += "; by default " + p.Default
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", p.Name, text)
	}
	return b.String()
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
	one := "the field's"
	if s.Result != value.Null {
		one = s.Result.String()
	}
	if s.Span {
		one += "; of timestamps an int"
	}
	switch s.Shape {
	case aggregate.List:
		return "list of " + one
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
