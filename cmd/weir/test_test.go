package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heredocs returns the files that a page writes with cat, by name; appended text follows what the
// file already holds.
func heredocs(t *testing.T, page string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)cat >>? (\S+) <<'(?:YAML|CSV)'\n(.*?)\n(?:YAML|CSV)\n`).FindAllStringSubmatch(string(text), -1) {
		files[m[1]] += m[2] + "\n"
	}
	return files
}

// The tutorial's features pass the tutorial's tests together with the shipped ones, and one fails its
// test after a change.
func TestTutorialsTest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shipped, err := filepath.Glob("../../config/features/*.yaml")
	if err != nil || len(shipped) < 5 {
		t.Fatal(shipped, err)
	}
	written := heredocs(t, "../../docs/tutorial.md")
	definition, tests := written["my-features/transactions.yaml"], written["my-features/merchants_test.yaml"]
	customers := written["my-features/customers.yaml"]
	if definition == "" || tests == "" || customers == "" {
		t.Fatalf("the tutorial writes %v, want two definitions and a test", written)
	}
	for _, name := range shipped {
		text := readFile(t, name)
		if filepath.Base(name) == "transactions.yaml" {
			text += definition
		}
		writeFile(t, dir, filepath.Base(name), text)
	}
	writeFile(t, dir, "merchants_test.yaml", tests)
	writeFile(t, dir, "customers.yaml", customers)
	writeFile(t, dir, "customers_test.yaml", written["my-features/customers_test.yaml"])
	report := filepath.Join(t.TempDir(), "report.xml")
	out, err := weir(t, "test", dir, "--junit", report)
	if err != nil || !strings.Contains(out, "ok   a card at two merchants\n") || !strings.Contains(out, "ok   tiers\n") ||
		!strings.HasSuffix(out, "16 tests, 0 failed, 62 values compared\n") || strings.Contains(out, "not asked about") {
		t.Errorf("want 16 tests to pass: error %v, output\n%s", err, out)
	}
	if got := readFile(t, report); !strings.Contains(got, `<testsuites tests="16" failures="0" errors="0">`) {
		t.Errorf("the report does not count 16 tests:\n%s", got)
	}

	writeFile(t, dir, "transactions.yaml", strings.Replace(readFile(t, filepath.Join(dir, "transactions.yaml")), "COUNT_DISTINCT(1h, transaction, user_id, m", "COUNT_DISTINCT(5m, transaction, user_id, m", 1))
	out, err = weir(t, "test", dir)
	if err == nil || message(err) != "weir: 1 of 16 tests failed" || !strings.Contains(out, "FAIL a card at two merchants\n       merchants_test.yaml:10: user_merchants_1h of user_id=u1 at ") {
		t.Errorf("want one test to fail: error %v, output\n%s", err, out)
	}
}

func TestTestBadUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	bad := writeFile(t, dir, "bad_test.yaml", "tets: []")
	report := filepath.Join(dir, "report.xml")
	if _, err := weir(t, "test", dir, "--junit", report); err == nil || !strings.Contains(readFile(t, report), `<testsuites tests="1" failures="0" errors="1">`) {
		t.Errorf("error %v, and the report does not count a file that cannot be run:\n%s", err, readFile(t, report))
	}
	for _, b := range []struct{ args, want string }{
		{"DIR/none", "weir: DIR/none: no such file or directory"},
		{filepath.Dir(writeFile(t, t.TempDir(), "x.yaml", "")), "weir: FIRST: there is no *_test.yaml below it"},
		{"DIR", bad + `:1:1: unknown key "tets" of a file of tests; did you mean "tests"?` + "\n" + bad + ":1:1: tests: expected a list of tests"},
		{"../../config/features --junit DIR/none/report.xml", "weir: --junit: open DIR/none/report.xml: no such file or directory"},
	} {
		args := strings.Fields(strings.ReplaceAll(b.args, "DIR", dir))
		_, err := weir(t, append([]string{"test"}, args...)...)
		want := strings.NewReplacer("DIR", dir, "FIRST", args[0]).Replace(b.want)
		if err == nil || message(err) != want {
			t.Errorf("%s\ngot  %v\nwant %s", b.args, err, want)
		}
	}
}
