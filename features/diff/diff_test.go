package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/testkit/defined"
)

const before = `
streams:
  pay: {topic: payments, match: kind == "pay", timestamp: at, id: id, fields: {user: string, device: string, amount: decimal, note: string}}
  login: {topic: logins, timestamp: at, fields: {user: string, device: string}}
features:
  paid: SUM(1d, pay, amount, user)
  count: COUNT(1h, pay, user)
  logins: COUNT(30d, login, user)
  ever: COUNT(lifetime, pay, user)
  ratio: {expr: paid / count}
  near: COUNT(1h, pay, SET(1h, login, user, device))
  seen: COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10)
services:
  risk: [paid, ratio, ever]
  other: [near]
`

func load(t *testing.T, text string) *features.Registry {
	t.Helper()
	return defined.Registry(t, text)
}

// Each change states its meaning, how much state is kept, and what services lose.
func TestOf(t *testing.T) {
	for _, c := range []struct {
		change []string // pairs of what is replaced
		want   string
		loses  string
	}{
		{nil, "nothing changes but perhaps descriptions\n", "[]"},
		{[]string{"  paid: SUM(1d, pay, amount, user)\n", "  paid: {description: Money., function: sum, stream: pay, field: amount, by: [user], window: 1d}\n"}, "nothing changes but perhaps descriptions\n", "[]"},
		{[]string{"COUNT(30d, login", "COUNT(60d, login"}, `
features
  ~ logins: answers from its state, which reaches back 30d: complete once it is filled, or after 60d
      COUNT(30d, login, user) -> COUNT(60d, login, user)
cost
  bytes of an entity user, full: 1 -> 1
`, "[]"},
		{[]string{"SUM(1d, pay", "SUM(2d, pay"}, `
features
  ~ paid: answers from its tiles of 1h, which reach back 1d: complete once it is filled, or after 2d (in risk)
      SUM(1d, pay, amount, user) -> SUM(2d, pay, amount, user)
  ~ ratio: answers from its tiles of 1h, which reach back 1d: complete once it is filled, or after 2d (in risk)
      rests on paid
cost
  bytes of an entity user, full: 1 -> 1
`, "[]"},
		{[]string{"COUNT(30d, login", "COUNT(1d, login"}, `
features
  ~ logins: answers from its tiles of 1d, which reach back 30d: complete once it is filled, or after 1d
      COUNT(30d, login, user) -> COUNT(1d, login, user)
cost
  bytes of an entity user, full: 1 -> 1
`, "[]"},
		{[]string{"SUM(1d, pay, amount, user)", "SUM(6h, pay, amount, user, tile=2h)", "COUNT(30d, login", "COUNT(2h, login", "COUNT(lifetime, pay", "COUNT(lifetime, login"}, `
features
  ~ ever: answers from its tiles of 1d, which reach back 30d: complete once it is filled (in risk)
      COUNT(lifetime, pay, user) -> COUNT(lifetime, login, user)
  ~ logins: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      COUNT(30d, login, user) -> COUNT(2h, login, user)
  ~ paid: answers from its tiles of 1h, which reach back 1d: complete once it is filled, or after 6h (in risk)
      SUM(1d, pay, amount, user) -> SUM(6h, pay, amount, user, tile=2h)
  ~ ratio: answers from its tiles of 1h, which reach back 1d: complete once it is filled, or after 6h (in risk)
      rests on paid
cost
  bytes of an entity user, full: 1 -> 1
  mutations of an event of login: 1 -> 1
  mutations of an event of pay: 1 -> 1
`, "[]"},
		{[]string{"SUM(1d, pay, amount, user)", "SUM(2d, pay, amount, user, tile=1h)"}, `
features
  ~ paid: answers from its state, which reaches back 1d: complete once it is filled, or after 2d (in risk)
      SUM(1d, pay, amount, user) -> SUM(2d, pay, amount, user, tile=1h)
  ~ ratio: answers from its state, which reaches back 1d: complete once it is filled, or after 2d (in risk)
      rests on paid
cost
  bytes of an entity user, full: 1 -> 1
`, "[]"},
		{[]string{"max=10", "max=20"}, `
features
  ~ seen: answers from its state, which has fewer values than it needs: complete once it is filled, or after 2h
      COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10) -> COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=20)
cost
  bytes of an entity device, full: 1 -> 1
`, "[]"},
		{[]string{"2h, pay, device, user, method=last_seen, max=10", "3h, pay, device, user, method=last_seen, max=20"}, `
features
  ~ seen: answers from its state, which reaches back 2h: complete once it is filled, or after 3h
      COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10) -> COUNT_DISTINCT(3h, pay, device, user, method=last_seen, max=20)
cost
  bytes of an entity device, full: 1 -> 1
`, "[]"},
		{[]string{"max=10)", "max=10, keep=9d)"}, `
features
  ~ seen: answers from its state, which reaches back 3h: complete once it is filled, or after 2h
      COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10) -> COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10, keep=9d)
`, "[]"},
		{[]string{"COUNT_DISTINCT(2h", "COUNT_DISTINCT(lifetime"}, `
features
  ~ seen: answers from its state, which reaches back 2h: complete once it is filled
      COUNT_DISTINCT(2h, pay, device, user, method=last_seen, max=10) -> COUNT_DISTINCT(lifetime, pay, device, user, method=last_seen, max=10)
`, "[]"},
		{[]string{"COUNT(30d, login", "COUNT(10d, login"}, `
features
  ~ logins: all of its state is there
      COUNT(30d, login, user) -> COUNT(10d, login, user)
cost
  bytes of an entity user, full: 1 -> 1
`, "[]"},
		{[]string{"COUNT(1h, pay, user)", "COUNT(1h, pay, user, where='amount > 1')"}, `
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      COUNT(1h, pay, user) -> COUNT(1h, pay, user, where='amount > 1')
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
`, "[ratio]"},
		{[]string{"COUNT(1h, pay, user)", "COUNT(1h, pay, user, where='amount > 1')", "note: string", "shop: string"}, `
streams
  ~ pay
      field note is gone
      field shop is new
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      COUNT(1h, pay, user) -> COUNT(1h, pay, user, where='amount > 1')
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
`, "[ratio]"},
		{[]string{`kind == "pay"`, `kind == "payment"`, "note: string", "shop: string"}, `
streams
  ~ pay
      match kind == "pay" -> kind == "payment"
      field note is gone
      field shop is new
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      the events of stream pay are read in another way
  ~ ever: starts over from nothing, and answers less than now: complete once it is filled (in risk)
      the events of stream pay are read in another way
  ~ near: starts over from nothing, and answers less than now: complete once it is filled, or after 1h (in other)
      the events of stream pay are read in another way
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
      rests on paid
  ~ seen: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      the events of stream pay are read in another way
`, "[ever near paid ratio]"},
		{[]string{"timestamp: at, id: id", "timestamp: at, id: id, dedup: 10m"}, `
streams
  ~ pay
      dedup none -> 10m
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      the events of stream pay are read in another way
  ~ ever: starts over from nothing, and answers less than now: complete once it is filled (in risk)
      the events of stream pay are read in another way
  ~ near: starts over from nothing, and answers less than now: complete once it is filled, or after 1h (in other)
      the events of stream pay are read in another way
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
      rests on paid
  ~ seen: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      the events of stream pay are read in another way
`, "[ever near paid ratio]"},
		{[]string{"timestamp: at, id: id", "timestamp: at, max_future: 1h, id: id", "note: string", "note: {type: string, required: true}"}, `
streams
  ~ pay
      max_future 5m0s -> 1h0m0s
      field note string note of 256 bytes -> string note required of 256 bytes
features
  ~ count: all of its state is there
      other records of stream pay become dead letters
  ~ ever: all of its state is there (in risk)
      other records of stream pay become dead letters
  ~ near: all of its state is there (in other)
      other records of stream pay become dead letters
  ~ paid: all of its state is there (in risk)
      other records of stream pay become dead letters
  ~ ratio: all of its state is there (in risk)
      rests on count
      rests on paid
  ~ seen: all of its state is there
      other records of stream pay become dead letters
`, "[]"},
		{[]string{"amount: decimal", "amount: {type: decimal, encoding: base64}"}, `
streams
  ~ pay
      field amount decimal amount scale 2 -> decimal amount scale 2 base64
features
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on paid
`, "[paid ratio]"},
		{[]string{"id: id, fields", "id: id, lenient: true, fields", "amount: decimal", "amount: {type: decimal, round: true}"}, `
streams
  ~ pay
      timestamp at in ms -> at in ms lenient
      field amount decimal amount scale 2 -> decimal amount scale 2 rounded
features
  ~ count: all of its state is there
      other records of stream pay become dead letters
  ~ ever: all of its state is there (in risk)
      other records of stream pay become dead letters
  ~ near: all of its state is there (in other)
      other records of stream pay become dead letters
  ~ paid: all of its state is there (in risk)
      other records of stream pay become dead letters
  ~ ratio: all of its state is there (in risk)
      rests on count
      rests on paid
  ~ seen: all of its state is there
      other records of stream pay become dead letters
`, "[]"},
		{[]string{"id: id, fields", "id: id, each: items, fields"}, `
streams
  ~ pay
      each none -> items
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      the events of stream pay are read in another way
  ~ ever: starts over from nothing, and answers less than now: complete once it is filled (in risk)
      the events of stream pay are read in another way
  ~ near: starts over from nothing, and answers less than now: complete once it is filled, or after 1h (in other)
      the events of stream pay are read in another way
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
      rests on paid
  ~ seen: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      the events of stream pay are read in another way
`, "[ever near paid ratio]"},
		{[]string{"amount: decimal", "amount: {type: decimal, exponent: -18, null_values: [\"\"]}"}, `
streams
  ~ pay
      field amount decimal amount scale 2 -> decimal amount scale 2 exponent -18 null [""]
features
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on paid
`, "[paid ratio]"},
		{[]string{"note: string}", "note: string, shop: int}"}, `
streams
  ~ pay
      field shop is new
`, "[]"},
		{[]string{"id: id, fields", "id: id, max_bytes: 100, fields"}, `
streams
  ~ pay
      field device string device of 256 bytes -> string device of 100 bytes
      field note string note of 256 bytes -> string note of 100 bytes
      field user string user of 256 bytes -> string user of 100 bytes
features
  ~ seen: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      the events of stream pay are read in another way
`, "[]"},
		{[]string{"  ever: COUNT(lifetime, pay, user)\n", "  often: COUNT(2h, pay, device)\n", "ratio, ever]", "ratio, often]", "  other: [near]\n", "  third: [near]\n"}, `
features
  - ever: gone (in risk)
  + often: answers from its state, which reaches back 1h: complete once it is filled, or after 2h (in risk)
services
  - other
  ~ risk
      - ever
      + often
  + third
cost
  bytes of an entity device, full: 1 -> 1
  bytes of an entity user, full: 1 -> 1
  bytes of an entity user, met once: 1 -> 1
  mutations of an event of pay: 1 -> 1
`, "[ever]"},
		{[]string{"id: id, fields", "id: id, enrich: {service: risk, topic: enriched}, fields"}, `
enriched events
  + pay
`, "[]"},
		{[]string{"pay: {topic: payments, match", "pay: {topics: {payments: {}, transfers: {fields: {user: usr}}}, match"}, `
streams
  ~ pay
      topic payments -> payments, transfers
features
  ~ count: starts over from nothing, and answers less than now: complete once it is filled, or after 1h
      the events of stream pay are read in another way
  ~ ever: starts over from nothing, and answers less than now: complete once it is filled (in risk)
      the events of stream pay are read in another way
  ~ near: starts over from nothing, and answers less than now: complete once it is filled, or after 1h (in other)
      the events of stream pay are read in another way
  ~ paid: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      the events of stream pay are read in another way
  ~ ratio: starts over from nothing, and answers less than now: complete once it is filled, or after 1d (in risk)
      rests on count
      rests on paid
  ~ seen: starts over from nothing, and answers less than now: complete once it is filled, or after 2h
      the events of stream pay are read in another way
`, "[ever near paid ratio]"},
	} {
		d := Of(load(t, before), load(t, strings.NewReplacer(c.change...).Replace(before)))
		for i := range d.Cost { // the amounts are those of package cost
			if d.Cost[i].Before == d.Cost[i].After {
				t.Errorf("%+v is listed without a change", d.Cost[i])
			}
			d.Cost[i].Before, d.Cost[i].After = 1, 1
		}
		var got strings.Builder
		d.WriteText(&got)
		if diff := cmp.Diff(strings.TrimPrefix(c.want, "\n"), got.String()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", c.change, diff)
		}
		if got := fmt.Sprint(d.Loses()); got != c.loses {
			t.Errorf("%q: services lose %s, want %s", c.change, got, c.loses)
		}
	}
}

// A change of enriched events is not a change of how the stream is read.
func TestEnrichedEvents(t *testing.T) {
	enriched := func(how string) *features.Registry {
		return load(t, strings.Replace(before, "id: id,", "id: id, enrich: {"+how+"},", 1))
	}
	d := Of(enriched("service: risk, topic: a"), enriched("service: other, topic: b, format: avro"))
	want := []Change{{Name: "pay", Changes: []string{"topic a -> b", "service risk -> other", "format json -> avro"}}}
	if diff := cmp.Diff(want, d.Enriched); diff != "" || d.Streams != nil || d.Features != nil {
		t.Errorf("streams %v, features %v, enriched events (-want +got):\n%s", d.Streams, d.Features, diff)
	}
	if gone := Of(enriched("service: risk, topic: a"), load(t, before)).Enriched; len(gone) != 1 || !gone[0].Gone {
		t.Errorf("a removed enrichment is not reported as gone: %+v", gone)
	}
}

// An average counts events in place of values once its field is required. That is not because they are read otherwise.
func TestAverageOfARequiredField(t *testing.T) {
	with := strings.Replace(before, "features:\n", "features:\n  mean: AVG(1h, pay, amount, user)\n", 1)
	for field, want := range map[string]string{
		"amount: {type: decimal, required: true}":            "[other records of stream pay become dead letters]",
		"amount: {type: decimal, path: sum, required: true}": "[the events of stream pay are read in another way]",
	} {
		got := ""
		for _, f := range Of(load(t, with), load(t, strings.Replace(with, "amount: decimal", field, 1))).Features {
			if f.Name == "mean" {
				got = fmt.Sprint(f.Changes)
			}
		}
		if got != want {
			t.Errorf("%s: mean has the changes %s, want %s", field, got, want)
		}
	}
}

// Filters keep the rate of false positives that they were made for.
func TestRatesOfFilters(t *testing.T) {
	const said = "the state has values whose rate of false positives is greater than fp allows now"
	with := func(met string) *features.Registry {
		return load(t, strings.Replace(before, "features:\n", "features:\n  met: SEEN("+met+")\n", 1))
	}
	for met, want := range map[string]bool{
		"7d, pay, device, user, fp=0.01":                              true,
		"14d, pay, device, user, fp=0.1":                              true,
		"14d, pay, device, user, fp=0.2":                              false,
		"1d, pay, device, user, tile=1d, fp=0.02":                     false,
		"7d, pay, device, user, fp=0.01, where='amount > 1'":          false,
		"7d, pay, device, user, fp=0.2)\n  more: COUNT(1h, pay, user": false,
	} {
		got := false
		for _, f := range Of(with("7d, pay, device, user, fp=0.1"), with(met)).Features {
			got = got || f.Name == "met" && slices.Contains(f.Changes, said)
		}
		if got != want {
			t.Errorf("SEEN(%s): the rate is said to be greater: %v, want %v", met, got, want)
		}
	}
}

// A new feature is complete after its longest window, whatever the zone of a calendar and the moment of the question.
func TestNeeds(t *testing.T) {
	for _, c := range []struct{ window, options, want string }{
		{"1d", "", "1d"}, {"1d", ", delay=2h", "26h"}, {"1h", ", tile=exact, bounds='[]'", "1h"}, {"tumbling 5m", "", "5m"},
		{"calendar day", "", "1d"}, {"calendar day tz Asia/Tokyo", "", "1d"}, {"calendar week", "", "7d"},
		{"calendar month tz Asia/Tokyo", "", "31d"}, {"calendar day tz Europe/Berlin", "", "25h"}, {"calendar hour tz Asia/Kolkata", "", "1h"},
		{"session 30m", "", "1470m"}, {"fixed 1h", "", "2d"}, {"rolling 2d last 3", "", "2d"}, {"lifetime", "", "0s"}, {"last 10", "", "0s"},
		{"fixed 36500d", ", delay=36500d", "109500d"}, // more than a time.Duration holds
	} {
		r := load(t, strings.Replace(before, "COUNT(1h, pay, user)", "COUNT("+c.window+", pay, user"+c.options+")", 1))
		f, _ := r.Feature("count")
		if got := window.FormatMilliseconds(needs(f)); got != c.want {
			t.Errorf("%s%s needs %s, want %s", c.window, c.options, got, c.want)
		}
	}
}

// An unchanged feature needs nothing that the previous plan did not keep.
func TestUnchangedFeaturesKeepAll(t *testing.T) {
	r := load(t, before)
	for _, f := range r.Features {
		if got, _, _, _ := keeps(r.Plan(), f, f); got != All {
			t.Errorf("%s keeps %s under its own plan, want all", f.Name, got)
		}
	}
}

// What changes in all topics of a stream is said once, and of a topic what changes there.
func TestChangesOfTopics(t *testing.T) {
	stream := func(topics, more string) *features.Registry {
		return load(t, "streams:\n  pay: {topics: {"+topics+"}, timestamp: at, fields: {user: string"+more+"}}\nfeatures: {}\n")
	}
	was := stream("a: {}, b: {timestamp: ts, fields: {user: usr}}, c: {id: key}", "")
	for _, c := range []struct {
		after *features.Registry
		want  string
	}{
		{stream("a: {}, b: {timestamp: ts, fields: {user: usr}}, c: {id: key}", ", shop: string"), "field shop is new"},
		{stream("a: {}, b: {fields: {user: who}}, c: {id: key}", ""), "in topic b: timestamp ts in ms -> at in ms; in topic b: field user string usr of 256 bytes -> string who of 256 bytes"},
		{stream("c: {id: key, match: x == 1}, d: {}", ""), `topic a, b, c -> c, d; match none -> x == 1`},
	} {
		if got := strings.Join(streamChanges(was.Streams[0], c.after.Streams[0]), "; "); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// Definitions may lie in another folder than those that they are compared with. The file of a table is the one beside
// them.
func TestTablesInAnotherFolder(t *testing.T) {
	in := func(folder, file string) *features.Registry {
		t.Helper()
		text := "tables: {country: {file: " + file + ", key: code, fields: {risky: bool}}}\nfeatures: {risky: {expr: country.risky}}\n"
		r, err := definition.LoadFiles(features.Files{Definitions: []features.File{{Path: folder + "/tables.yaml", Text: text}}})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	was := in("one", "countries.csv")
	for _, c := range []struct {
		folder, file string
		means, reads bool
	}{
		{"one", "countries.csv", true, true},
		{"other", "countries.csv", true, false},
		{"one", "others.csv", false, false},
	} {
		is := in(c.folder, c.file)
		if means := is.Version() == was.Version() && Of(was, is).Features == nil; means != c.means || is.Same(was) != c.reads {
			t.Errorf("%s in %s: the same meaning: %v, and the same file: %v; want %v and %v", c.file, c.folder, means, is.Same(was), c.means, c.reads)
		}
	}
}
