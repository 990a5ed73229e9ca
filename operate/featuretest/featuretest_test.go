package featuretest

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The shipped features pass their tests, and all of them are tested.
func TestShippedFeatures(t *testing.T) {
	files, err := Find("../../config/features")
	if err != nil {
		t.Fatal(err)
	}
	var results []*Result
	for _, file := range files {
		r, err := Run(context.Background(), file)
		if err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
		if len(r.Tests) == 0 || r.Failed() > 0 {
			var text strings.Builder
			WriteText(&text, []*Result{r})
			t.Error(text.String())
		}
	}
	for _, left := range untested(results) {
		if len(left) > 0 {
			t.Errorf("no test asks about %v", left)
		}
	}
}

// A test may expect values of every kind, and give events as fields or as records.
func TestValuesOfAllTypes(t *testing.T) {
	r, err := Run(context.Background(), "testdata/all_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed() > 0 || len(r.Untested) > 0 || r.Tests[0].Values != 16 {
		t.Errorf("want 16 values without a failure, got %+v", r)
	}
}

// A failure is reported with its line, the expectation, and the basis of the answer.
func TestFailures(t *testing.T) {
	r, err := Run(context.Background(), "testdata/failing_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	broken := &Result{File: "testdata/broken_test.yaml", Err: errors.New("broken_test.yaml:1:1: it is empty\nbroken_test.yaml:1:2: it has no end")}
	for i := range r.Tests {
		r.Tests[i].Took = 1500 * time.Microsecond
	}
	for name, write := range map[string]func(*strings.Builder) error{
		"failing.txt": func(b *strings.Builder) error {
			WriteText(b, []*Result{r})
			return nil
		},
		"failing.xml": func(b *strings.Builder) error { return WriteJUnit(b, []*Result{r, broken}) },
	} {
		var got strings.Builder
		if err := write(&got); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if os.Getenv("WEIR_UPDATE") != "" {
			if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if filepath.Ext(name) == ".xml" {
			var any struct{ XMLName xml.Name }
			if err := xml.Unmarshal([]byte(got.String()), &any); err != nil || any.XMLName.Local != "testsuites" {
				t.Error(err)
			}
		}
	}
}

// runText runs a file of tests over the definitions of testdata.
func runText(t *testing.T, tests string) *Result {
	t.Helper()
	definitions, err := filepath.Abs("testdata/definitions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "some_test.yaml")
	if err := os.WriteFile(path, []byte("definitions: ["+definitions+"]\ntests:\n"+tests), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Only floats may differ in their last digits. Decimals are exact, whatever their size.
func TestGreatDecimals(t *testing.T) {
	r := runText(t, `
  - name: money
    events: [pay: {at: 1m, kind: pay, user: u, amount: 12345678901234.56, score: 12345678901234.56}]
    questions:
      - {at: 2m, entity: {user: u}, expect: {paid: 12345678901234.57, score: 12345678901234.57, amounts: [12345678901234.57]}}
      - {at: 2m, entity: {user: u}, expect: {paid: 12345678901234.6, score: 12345678901234.6, amounts: [12345678901234.56]}}
`)
	var failed []string
	for _, f := range r.Tests[0].Failures {
		failed = append(failed, strings.Fields(f.Message)[0])
	}
	if got, want := fmt.Sprint(failed), "[paid amounts]"; got != want {
		t.Errorf("%v differ from what is expected, want %s: %+v", got, want, r.Tests[0].Failures)
	}
}

// Every bad file has its messages, with their locations.
func TestBadFiles(t *testing.T) {
	definitions, err := filepath.Abs("testdata/definitions.yaml")
	if err != nil {
		t.Fatal(err)
	}
	test := func(body string) string { return "definitions: [" + definitions + "]\ntests:\n  - name: t\n" + body }
	ask := "    questions: [{at: 5m, entity: {user: u}, expect: {paid: 0}}]\n"
	event := func(e string) string { return test("    events: [" + e + "]\n" + ask) }
	for _, c := range []struct{ in, want string }{
		{"", "FILE: there are no tests in it"},
		{"a: [", "FILE:1:1: bad YAML: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{"- a", "FILE:1:1: a file of tests: expected keys with values\nFILE:1:1: tests: expected a list of tests"},
		{"tets: []", `FILE:1:1: unknown key "tets" of a file of tests; did you mean "tests"?` + "\nFILE:1:1: tests: expected a list of tests"},
		{"definitions: x\ntests: [{}]", "FILE:1:14: definitions: expected a list of files or folders\nFILE:2:9: the test has no name\nFILE:2:9: the test has no questions"},
		{"definitions: [none.yaml]\ntests: [{name: t, questions: [{at: 1m, entity: {}, expect: {a: 1}}]}]", "DIR/none.yaml: cannot read definitions: no such file or directory"},
		{"start: noon\ntests: [{name: t, questions: [{at: 1m, entity: {}, expect: {a: 1}}]}]", "FILE:1:8: start: expected a moment: an offset from the start such as +5m or -2d, or RFC 3339 such as 2026-01-31T10:00:00Z"},
		{test(ask) + "  - name: t\n" + ask, `FILE:5:5: there are two tests with the name "t"`},
		{test(ask) + "defaults: {pya: {}}\n", `FILE:5:17: defaults: unknown stream "pya"; did you mean "pay"?`},
		{test(ask) + "---\ntests:\n  - name: u\n" + ask, "FILE:6:1: a second YAML document: write all tests into one, without ---"},
		{test(ask) + "---\na: [", "FILE:6:1: bad YAML: did not find expected node content; close the brackets or braces, and quote a text that contains any of , [ ] { }"},
		{test(ask) + "tests:\n  - name: u\n" + ask, `FILE:5:1: duplicate key "tests"; it is already at line 2`},
		{event("{pay: &p {at: 1m, amount: [1, *p]}}"), "FILE:4:44: *p stands for a value that it is in"},
		{event("{pay: {at: 1m, amount: 1, at: 2m}}"), `FILE:4:40: duplicate key "at"; it is already at line 4`},
		{test("    questions: [{}]"), "FILE:4:17: the question has no at\nFILE:4:17: the question has no entity\nFILE:4:17: the question has no expect"},
		{test("    questions: [{when: 5m, at: soon, entity: {}, expect: {a: 1}}]"), `FILE:4:18: unknown key "when" of a question; known: at, entity, event, expect` +
			"\nFILE:4:32: at: expected a moment: an offset from the start such as +5m or -2d, or RFC 3339 such as 2026-01-31T10:00:00Z"},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: {piad: 0}}]"), `FILE:4:54: unknown feature "piad"; did you mean "paid"?`},
		{test("    questions: [{at: 5m, entity: {usr: u}, expect: {paid: 0}}]"), `FILE:4:34: feature "paid" needs user; the entity has usr`},
		{test("    questions: [{at: 5m, entity: {no: x}, expect: {great: 0}}]"), `FILE:4:34: no: "x" is not of type int, which feature "great" needs: it is no number`},
		{test("    questions: [{at: 5m, entity: {no: 1.5}, expect: {great: 0}}]"), `FILE:4:34: no: "1.5" is not of type int, which feature "great" needs: it is no whole number`},
		{test("    questions: [{at: 5m, entity: {no: 99999999999999999999}, expect: {great: 0}}]"), `FILE:4:34: no: "99999999999999999999" is not of type int, which feature "great" needs: it does not fit 64 bits`},
		{test("    questions: [{at: 5m, entity: {no: [1]}, expect: {great: 0}}]"), `FILE:4:34: no: "" is not of type int, which feature "great" needs: it is no single value`},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: {prices: {9.990: true, 9.999: false, cheap: false}}}]"),
			`FILE:4:76: "9.999" is not of type decimal, which amount is: it has more than 2 digits after the decimal point` +
				"\n" + `FILE:4:90: "cheap" is not of type decimal, which amount is: it is no number`},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: {known: true}}]"), `FILE:4:54: feature "known" is asked about values of page: write {VALUE: true, VALUE: false}`},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: {known: {}}}]"), `FILE:4:54: feature "known" is asked about values of page: write {VALUE: true, VALUE: false}`},
		{test("    questions: [{at: 5m, entity: u, expect: {paid: 0}}]"), "FILE:4:34: entity: expected keys with their values, such as {user_id: u1}"},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: {}}]"), "FILE:4:53: expect: expected features with their values, such as {user_tx_1h: 3}"},
		{test("    questions: [{at: 5m, entity: {user: u}, expect: 40.5}]"), "FILE:4:53: expect: expected features with their values, such as {user_tx_1h: 3}"},
		{test("    questions: {at: 5m}"), "FILE:4:16: questions: expected a list\nFILE:3:5: the test has no questions"},
		{test("    events: none\n" + ask), "FILE:4:13: events: expected a list"},
		{test(ask) + "defaults: [pay]\n", "FILE:5:11: defaults: expected streams, each with fields of its events"},
		{test(ask) + "defaults: {pay: 1}\n", "FILE:5:17: defaults: expected fields with their values, such as {user_id: u1}"},
		{event("pay"), "FILE:4:14: expected an event: STREAM: {at: +5m, FIELD: VALUE, …}, or topic: and value: of a record"},
		{event("{pay: {amount: 1}}"), "FILE:4:14: the event has no at: when it happened, such as +5m after the start, or 2026-01-31T10:00:00Z"},
		{event("{pay: {at: 1m}, view: {at: 1m}}"), "FILE:4:30: an event is of one stream: pay or view"},
		{event("{topic: payments, value: {}}"), "FILE:4:14: the record has no came: when it was written"},
		{event("{topic: payment, came: 1m, value: {}}"), `FILE:4:14: unknown topic "payment"; did you mean "payments"?`},
		{event("{pays: {at: 1m}}"), `FILE:4:14: unknown stream "pays"; did you mean "pay"?`},
		{event("{pay: {at: 1m, amuont: 1}}"), `FILE:4:14: unknown field "amuont" of stream pay; did you mean "amount"?`},
		{event("{pay: {at: 1m, big: true}}"), "FILE:4:14: field big is computed from others: give those"},
		{event("{pay: {at: 1h, kind: pay}}"), "FILE:4:14: the event comes after all questions, so nothing is asked about it"},
	} {
		path := filepath.Join(t.TempDir(), "bad_test.yaml")
		if err := os.WriteFile(path, []byte(c.in), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Run(context.Background(), path)
		want := strings.NewReplacer("FILE", path, "DIR", filepath.Dir(path)).Replace(c.want)
		if fmt.Sprint(err) != want {
			t.Errorf("%s\ngot  %v\nwant %s", c.in, err, want)
		}
	}
	if _, err := Run(context.Background(), "none_test.yaml"); fmt.Sprint(err) != "open none_test.yaml: no such file or directory" {
		t.Error(err)
	}
}

// Tests are found in and below folders; files are used as given.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a_test.yaml", "b/c_test.yml", "b/d.yaml"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Find(dir, filepath.Join(dir, "b/d.yaml"), filepath.Join(dir, "b"))
	if want := regexp.MustCompile(`^\[\S+/a_test.yaml \S+/b/c_test.yml \S+/b/d.yaml\]$`); err != nil || !want.MatchString(fmt.Sprint(files)) {
		t.Error(files, err)
	}
	if _, err := Find(filepath.Join(dir, "none")); err == nil {
		t.Error("no error for a missing folder")
	}
	empty := t.TempDir()
	if _, err := Find(empty); fmt.Sprint(err) != empty+": there is no *_test.yaml below it" {
		t.Error(err)
	}
}

// A record as it is in its topic is read through the format of its stream, and may be a tombstone; an event of a stream is
// written by its fields, whatever the format.
func TestRecordsOfFormats(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"f.yaml": `
streams:
  change: {topic: changes, format: debezium, timestamp: at, fields: {user: string, op: {type: string, path: __op}}}
  event: {topic: events, format: cloudevents, timestamp: at, fields: {user: string, kind: {type: string, path: ce_type}}}
  line: {topic: lines, format: {type: csv, columns: [at, user, device]}, timestamp: at, fields: {user: string, device: string}}
  plain: {topic: plain, timestamp: at, fields: {user: string}}
features:
  changes: COUNT(1d, change, user, per=op)
  kinds: COUNT(1d, event, user, per=kind)
  devices: COUNT_DISTINCT(1d, line, user, device)
  plains: COUNT(1d, plain, user)
`,
		"f_test.yaml": `
tests:
  - name: formats
    events:
      - {topic: changes, came: +1m, value: {op: c, before: null, after: {at: 1767225600000, user: u}}}
      - {topic: changes, came: +1m, value: {op: d, before: {at: 1767225600000, user: u}, after: null}}
      - change: {at: +1m, user: u, op: c}
      - {topic: changes, came: +1m, value: {at: 1767225600000, user: u}, poison: malformed}
      - {topic: changes, came: +1m, value: null}
      - {topic: events, came: +1m, value: {specversion: "1.0", type: t, data: {at: 1767225600000, user: u}}}
      - event: {at: +1m, user: u, kind: k}
      - {topic: events, came: +1m, value: null}
      - {topic: lines, came: +1m, value: '1767225600000,u,""'}
      - {topic: lines, came: +1m, value: '1767225600000,u,'}
      - {topic: lines, came: +1m, value: '1767225600000,u,d'}
      - {topic: lines, came: +1m, value: '1767225600000,u', poison: malformed}
      - {topic: lines, came: +1m, value: null}
      - {topic: plain, came: +1m, value: {at: 1767225600000, user: u}}
      - {topic: plain, came: +1m, value: null}
      - {topic: plain, came: +1m, value: 7, poison: wrong_type}
    questions:
      - {at: +5m, entity: {user: u}, expect: {changes: {c: 2, d: 1}, kinds: {t: 1, k: 1}, devices: 2, plains: 1}}
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	result, err := Run(context.Background(), filepath.Join(folder, "f_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Tests) != 1 || result.Failed() > 0 {
		var text strings.Builder
		WriteText(&text, []*Result{result})
		t.Error(text.String())
	}
}

// Events of a stream that makes several of a record are given with the array.
func TestSeveralEvents(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"defs.yaml": `
streams:
  line: {topic: orders, each: order.items, timestamp: at, id: order.id, fields: {user: string, sku: {type: string, path: order.items.sku}}}
features: {skus: 'COUNT_DISTINCT(1h, line, user, sku)', n: 'COUNT(1h, line, user, tile=exact)'}
`,
		"defs_test.yaml": `
start: 2026-01-31T10:00:00Z
tests:
  - name: fields
    events: [line: {at: 1m, user: u, order.id: 7, order.items: [{sku: a}, {sku: b}, {sku: a}, {sku: a}]}]
    questions: [{at: 1m, entity: {user: u}, expect: {skus: 2, n: 4}}]
  - name: record
    events: [{topic: orders, came: 1m, value: {at: 1769853600000, user: u, order: {items: [{sku: a}]}}}]
    questions: [{at: 1m, entity: {user: u}, expect: {skus: 1}}]
  - name: none
    events: [line: {at: 1m, user: u, order.items: []}]
    questions: [{at: 1m, entity: {user: u}, expect: {skus: 0}}]
`,
		"bad_test.yaml": `
definitions: [defs.yaml]
tests:
  - name: one of the fields
    events: [line: {at: 1m, user: u, sku: a}]
    questions: [{at: 1m, entity: {user: u}, expect: {skus: 1}}]
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Run(context.Background(), filepath.Join(folder, "defs_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if none := r.Tests[2].Failures; len(r.Tests[0].Failures)+len(r.Tests[1].Failures) > 0 || len(none) != 1 || !strings.HasSuffix(none[0].Message, "it makes one of each element of order.items") {
		t.Errorf("%+v", r.Tests)
	}
	_, err = Run(context.Background(), filepath.Join(folder, "bad_test.yaml"))
	if want := "field sku is of each element of order.items: give the array, as order.items"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// Events are given by their fields as those of their record are written: in the form of its times, and with a place in two
// values.
func TestEventsAsTheyCome(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"defs.yaml": `
streams:
  pay:
    topic: payments
    lenient: true
    timestamp: {path: '["@time"]', layout: 02.01.2006 15:04:05, tz: Europe/Berlin}
    fields:
      user: {type: string, path: '["user.id"]'}
      seen: {type: timestamp, unit: auto}
      opened: {type: timestamp, tz: Asia/Shanghai}
      n: int
      home: {type: location, lat: latitude, lon: geo.lng}
      work: {type: location, encoding: lon_lat}
features:
  at: IDLE_SINCE(1h, pay, user)
  seen: LAST(1h, pay, seen, user)
  opened: LAST(1h, pay, opened, user)
  n: SUM(1h, pay, n, user)
  home: LAST(1h, pay, home, user)
  work: LAST(1h, pay, work, user)
`,
		"defs_test.yaml": `
start: 2026-01-31T10:00:00Z
tests:
  - name: fields
    events: [pay: {at: 1m, user: u, seen: 2m, opened: 3m, n: "7", home: {lat: 1.5, lon: "2"}, work: [3, 4]}]
    questions: [{at: 1m, entity: {user: u}, expect: {at: 1m, seen: 2m, opened: 3m, n: 7, home: {lat: 1.5, lon: 2}, work: {lat: 4, lon: 3}}}]
  - name: record
    events: [{topic: payments, came: 1m, value: {"@time": "31.01.2026 11:01:00", "user.id": u, seen: "1769853720", opened: 2026-01-31 18:03, latitude: 1.5, geo: {lng: 2}}}]
    questions: [{at: 1m, entity: {user: u}, expect: {at: 1m, seen: 2m, opened: 3m, n: 0, home: {lat: 1.5, lon: 2}, work: null}}]
  - name: no place
    events: [pay: {at: 1m, user: u, home: null}]
    questions: [{at: 1m, entity: {user: u}, expect: {home: null}}]
`,
		"bad_test.yaml": `
definitions: [defs.yaml]
tests:
  - name: half a place
    events: [pay: {at: 1m, user: u, home: {lat: 1}}]
    questions: [{at: 1m, entity: {user: u}, expect: {home: null}}]
`,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := Run(context.Background(), filepath.Join(folder, "defs_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Failed() > 0 {
		var text strings.Builder
		WriteText(&text, []*Result{r})
		t.Error(text.String())
	}
	_, err = Run(context.Background(), filepath.Join(folder, "bad_test.yaml"))
	if want := "home: expected {lat: 52.5, lon: 13.4}, with values as the record has them"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}
