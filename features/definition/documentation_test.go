package definition

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/value"
)

// The page of the functions is written from the table of the kinds; its words
// about all of them stand here.
const documentationHead = `# Functions

Written by ` + "`go test ./features/definition -run Documentation -update`" + ` from the table of the functions (` + "`aggregate.All`" + `).

A feature is ` + "`FUNCTION(window, stream, arguments…, name=value…)`" + `, or a mapping with the same names: ` + "`function`, `stream`,\n`field`, `by`, `window`" + ` and the options. Names of functions are case-blind.

- **Nulls** are those of SQL: a function over a field passes over the events that lack it; one that takes no field counts
  them. An event that lacks one of the by-fields belongs to no entity.
- **Order** is that of the events' times; of one millisecond, that in which they came.
- **Nothing found**: where the window holds nothing to answer from, the answer is the value *without events*, with the
  status NOT_FOUND. Where it does, but that is too little for a value, it is null with NULL_VALUE.
- **Too young**: a feature whose state does not hold all events of the window yet, as it was added since, answers from those
  it holds with the status INCOMPLETE and ` + "`exact: false`; `complete_since`" + ` says since when it holds all.
- **Too old**: asked for a moment before the feature's ` + "`keep`" + `, the answer is null with OUTSIDE_MAX_AGE.
- **Damaged**: where the state of the entity cannot be read, the answer is null with DAMAGED.
- **Unavailable**: where the Redis master that holds the entity does not answer, the answer is null with UNAVAILABLE.
- **From**: *tiles* are numbers for each stretch of time, *by value* or *by range* one for each value or range of values in
  it; *moments* are number, mean and spread, *extremes* one value, *members* sets and *sketches* HyperLogLogs for each; *last
  seen* is the time at which each value was met last, and *filters* tell values that were met from others. With
  ` + "`tile: exact`" + ` every function is answered from the *log* of the entity's events, and those that have nothing else always
  are: their window is exact to the millisecond. The log of an entity keeps as many events as the greatest ` + "`max`" + ` of its
  features says (1000 by default): the last ones by time, in whatever order they come. An answer that lacks some is
  ` + "`capped`" + `.
- **Why some have no tiles**: to answer ` + "`last_k`, `first_k`, `last_distinct_k`, `lag`, `diff`, `distance`" + ` and ` + "`speed`" + ` tiles
  would have to keep several events each, which is what the log does; a ` + "`streak`" + ` depends on the order of all events, and the
  weights of ` + "`exp_decay_sum`" + ` on the age of each at the moment asked for.
- **` + "`per: category`" + `** answers with one value for each value of a further field of the event, as in
  ` + "`SUM(7d, transaction, amount, user, per=merchant)`" + `: ` + "`{\"Aldi\": 12.5, \"Lidl\": 900}`" + `. It goes with all functions that answer
  with one value, but not through a list, and not with ` + "`seen`" + `. Events that lack the category are passed over, and a category
  for which nothing is found is left out; where nothing is found for any, the answer is ` + "`{}`" + ` with NOT_FOUND. From tiles there
  are at most ` + "`max`" + ` categories (100 by default): of more, those whose texts come first, byte by byte, each of them complete,
  and the answer is ` + "`capped`" + `. ` + "`mode`, `entropy`, `quantile`" + ` and ` + "`count_distinct`" + ` with method last_seen are answered from the
  log then.
- **Exact** values have no error of their own: ints, decimals and times are exact, floats are rounded as floats are.
- **` + "`where`" + `** filters the events of every function; it is not the same as ` + "`condition`" + `, which a function looks at.
- **Bounds.** What is kept of an entity stays bounded, whatever comes: its key in Redis stays below 1 MiB with default
  options. ` + "`max`" + ` bounds values, categories and events. Features that grow with what they meet share 256 KiB of a key, and
  the logs another 256 KiB; a ` + "`max`" + ` above the default takes as many times more. What would take more is made smaller, and the answer says so: an
  exact count of values becomes an estimate with its ` + "`standard_error`" + `, a HyperLogLog has fewer registers and a greater one, a filter a
  greater ` + "`false_positive_rate`" + `; lists, logs and categories are ` + "`capped`" + `.
- **Several fields.** The order of the fields in ` + "`by`" + ` changes no answer, but what it costs: state of an entity of several values is
  kept within that of its first value while it is short. Begin with the field that has the most values and that other
  features go by too: ` + "`user, country`" + ` and not ` + "`country, user`" + `. Features whose ` + "`by`" + ` begin with different fields share no state.
- **Long values.** Of a string of more than 256 bytes its begin is kept, and 22 characters that stand for a hash of all of it: long
  values stay different, and a question that names one finds it. ` + "`where`" + ` and other expressions see it whole. ` + "`max_bytes`" + ` of a
  field, or of a stream for its fields, is another length. Values in an entity's key have 256 bytes at the most.

`

// documentedWindows are the windows in one line and in the long form.
var documentedWindows = []struct{ oneLine, long, means string }{
	{"7d", "{rolling: 7d}", "the 7 days up to the moment"},
	{"lifetime", "lifetime", "all there ever was"},
	{"calendar day tz Asia/Shanghai", "{calendar: day, tz: Asia/Shanghai}", "since local midnight; `hour`, `day`, `week` or `month`, " +
		"in `UTC` where no zone is named"},
	{"calendar week tz Europe/Berlin starts sunday", "{calendar: week, tz: Europe/Berlin, starts: sunday}", "weeks begin on Monday, or as `starts` says"},
	{"tumbling 5m", "{tumbling: 5m}", "the current one of the 5 minutes that follow on each other from 1970-01-01T00:00Z"},
	{"fixed 1h", "{fixed: 1h}", "begins with the entity's first event and lasts 1h; the first event after that begins the next"},
	{"session 30m", "{session: 30m}", "since the last 30m or more without an event"},
	{"session 30m max_length 2d", "{session: 30m, max_length: 2d}", "the same, looked for 2d back"},
	{"last 10", "{last: 10}", "the last 10 events"},
	{"rolling 1d last 10", "{rolling: 1d, last: 10}", "the last 10 events of a window; of any of those above"},
}

// documentedWindowsNotes are the words about them.
const documentedWindowsNotes = `
In quotes a line may have the braces too: ` + "`'COUNT({calendar: day, tz: Asia/Shanghai}, transaction, user)'`" + `. In front of
other words a duration or a lifetime needs no ` + "`rolling`" + `: ` + "`1d last 10`" + `; and ` + "`lifetime last 10`" + ` is ` + "`last 10`" + `.

- **Tiles.** Rolling, calendar and tumbling windows and lifetimes are counted in tiles where the function can: a week in
  days, a day in hours, hours in minutes, minutes in seconds; ` + "`tile: 5m`" + ` chooses. A rolling window ends with the tile
  that holds the moment and is as many tiles long as fit into it. A calendar window begins at the very moment: its tiles
  divide every local day of the zone since 1970 (of 1h where clocks are changed by hours, of 30m in India), and a ` + "`tile`" + `
  that does not is refused. The last tile may hold events later than a moment that has passed: the answer's ` + "`to`" + ` says so.
- **` + "`tile: exact`" + `** cuts to the millisecond, from the log. Then ` + "`bounds`" + ` are those of a rolling window, ` + "`(]`" + ` by
  default; all other windows have their first millisecond and that of the moment. Fixed windows, sessions and ` + "`last`" + `
  are always answered so.
- **` + "`delay: 7d`" + `** asks for the window that there was 7d before the moment.
- **Clocks.** A day on which clocks are put forward or back has 23 or 25 hours. An hour that they show twice is two hours. A
  midnight that they pass over is the moment at which they do, and of two midnights of a day the first one counts.
- **All events tell the window, ` + "`where`" + ` picks among them.** Every event of the entity in the stream begins or goes on with
  a fixed window or a session, and is one of the ` + "`last`" + ` ones and the one that ` + "`exclude`" + ` leaves out, whether the
  feature's ` + "`where`" + ` takes it or not. To have sessions of some events only, give them a stream of their own by ` + "`match`" + `.
- **How far back a beginning is looked for:** ` + "`max_length`" + `, by default 1d, or 10 times the window or the gap where that is
  longer. Of a longer session only so much is looked at. Fixed windows of an entity that never rests for as long as one
  lasts hang on each other without end: they are followed from the last such rest. Where there was none since the
  beginning of the last ` + "`max_length`" + ` but one (counted from 1970-01-01T00:00Z on), the first event since then begins one.
  Both are said by ` + "`capped`" + `. The log is kept for as long, as far as its ` + "`max`" + ` events reach.
- **Between windows** there is nothing: the answer is that without events, and ` + "`from`" + ` is the end of the last window.
- **` + "`last: 10`" + `** needs a ` + "`max`" + ` of 10 or more; ` + "`from`" + ` is the time of the first of them.
- **` + "`exclude: current`" + `** leaves out the event being scored: the newest of the entity at the moment asked for; ` + "`current_time`" + ` all
  events of its millisecond. It counts for where the window begins, and not among the ` + "`last`" + `. It needs the log.

`

func documentWindows(b *strings.Builder) {
	b.WriteString("## Windows\n\n| in one line | long form: `window:` | means |\n| --- | --- | --- |\n")
	for _, w := range documentedWindows {
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", w.oneLine, w.long, w.means)
	}
	b.WriteString(documentedWindowsNotes)
}

// What the documentation says to be one window is one.
func TestDocumentedWindows(t *testing.T) {
	for _, w := range documentedWindows {
		r, err := Parse("example", []byte(documentationStreams+
			"  f: COUNT("+w.oneLine+", transaction, user)\n  g: {function: count, stream: transaction, by: user, window: "+w.long+"}\n"))
		if err != nil {
			t.Errorf("%s: %v", w.oneLine, err)
			continue
		}
		if f, g := r.Features[0], r.Features[1]; f.Definition != g.Definition || f.Window.String() != w.oneLine {
			t.Errorf("%s is %s, and %s is %s", w.oneLine, f.Definition, w.long, g.Definition)
		}
	}
}

// documentationStreams are what the examples stand on.
const documentationStreams = `
streams:
  transaction:
    topic: transactions
    timestamp: ts
    fields: {user: string, device: string, merchant: string, status: string, amount: decimal, place: location}
features:
`

// documentationThrough is about multi-hop features.
const documentationThrough = `
## Multi-hop features

The entity of the second hop is each member of a list that the first one answers with. How many devices the users of a
device have used, how much they have spent, and the same in the long form:

` + "```yaml" + documentationThroughExample + "```" + `

They are asked with the keys of the first hop, here ` + "`device`" + `. It answers with a list, here the users of the device; the
function is over the events of all its members together: counts and sums add up, sets and distinct values unite. What can
go through a list is %s. FLAT_COUNT, FLAT_SUM, FLAT_SET and FLAT_COUNT_DISTINCT mean the same.

- **The list** is any feature with a list of values, such as a set or a ` + "`last_distinct_k`" + `, in a call or by the name of a
  feature. A list that goes through another one cannot be gone through.
- **The by-field** of the second hop holds the list's members, and has their type. A call in its place stands for the field
  of the list's own name; for another one, name the field and add the list as ` + "`through=…`" + `.
- **Each hop** has a window, a ` + "`where`, a `delay`" + ` of its own. ` + "`from` and `to`" + ` are those of the second; the answer is exact
  if both are. The past that can be asked for is that of both; a call in the place of the by-field keeps what the feature
  does. Where no member is found, the answer is the value without events, NOT_FOUND.
- **` + "`max`" + `** is how many members are gone through, 100 by default and %d at the most: the first of the list, each once. Of a
  set they are those that sort first; of a ` + "`last_distinct_k`" + `, the newest. Where there are more, or the list lacks some, the
  answer is ` + "`capped`" + `. With ` + "`tile: exact`" + ` the log of each member holds 1000 events, or what the other features of its entity
  ask for by their ` + "`max`" + `.
- **A question** takes two round trips: one for all that is asked for and for the lists, one for all members. A member that
  may be gone through counts as a value that is asked for (` + "`api.max_values`" + `).
`

const documentationThroughExample = `
device_users_devices: COUNT_DISTINCT(30d, transaction, SET(30d, transaction, device, user), device)
device_users: LAST_DISTINCT_K(30d, transaction, user, device, k=50)
device_users_spent: SUM(7d, transaction, amount, user, through=device_users, max=50)
device_users_spent_too:
  function: sum
  stream: transaction
  field: amount
  by: user
  window: 7d
  through: device_users
  max: 50
`

func documentation() string {
	var b strings.Builder
	b.WriteString(documentationHead)
	documentWindows(&b)
	b.WriteString("## All functions\n\n| function | answers with | from |\n| --- | --- | --- |\n")
	for _, k := range aggregate.All {
		s := k.Spec()
		fmt.Fprintf(&b, "| [%s](#%s) | %s | %s |\n", called(s), strings.ReplaceAll(called(s), " ", "-"), s.Title, answeredFrom(k))
	}
	for _, k := range aggregate.All {
		document(&b, k)
	}
	fmt.Fprintf(&b, documentationThrough, spelling.Alternatives(throughNames()), maxFanOut)
	return b.String()
}

// document writes the section of one kind.
func document(b *strings.Builder, k aggregate.Function) {
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
		row("field", spelling.Alternatives(names))
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
	switch {
	case slices.ContainsFunc(s.Parameters, func(p aggregate.Parameter) bool { return p.Type == aggregate.Rate }):
		exactness = "false is; true is wrong with the rate of false positives that is stated"
	case !s.Exact:
		exactness = "no: standard error " + strconv.FormatFloat(100*s.StandardError, 'g', 3, 64) + "%"
	}
	if s.Exact && slices.ContainsFunc(s.Parameters, func(p aggregate.Parameter) bool { return p.Type == aggregate.Accuracy }) {
		exactness = "from the log; from tiles within `error`"
	}
	row("exact", exactness)
	row("from", answeredFrom(k))
	if s.Through {
		row("[multi-hop](#multi-hop-features)", "`"+flatForm(s)+"`")
	}
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
		t.Errorf("docs/features.md (-want +got), written anew by go test -update:\n%s", diff)
	}
}

// Every example is a feature of its kind, in canonical form.
func TestDocumentedExamples(t *testing.T) {
	for _, k := range aggregate.All {
		s := k.Spec()
		r, err := Parse("example", []byte(documentationStreams+"  f: >-\n    "+s.Example+"\n"))
		if err != nil {
			t.Errorf("%s: %v", called(s), err)
			continue
		}
		if f := r.Features[0]; f.Definition != s.Example || f.Kind != k {
			t.Errorf("%s: %s defines %s", called(s), s.Example, f.Definition)
		}
		if s.Title == "" || slices.Contains(s.Types, value.Null) {
			t.Errorf("%s is not described", called(s))
		}
	}
}

func TestDocumentedMultiHop(t *testing.T) {
	r, err := Parse("example", []byte(documentationStreams+strings.ReplaceAll(documentationThroughExample, "\n", "\n  ")))
	if err != nil {
		t.Fatal(err)
	}
	if one, long := feature(t, r, "device_users_spent"), feature(t, r, "device_users_spent_too"); one.Definition != long.Definition {
		t.Errorf("%s is not %s", long.Definition, one.Definition)
	}
}
