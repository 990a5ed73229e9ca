package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// weir diff compares folders or a git revision, and serves as a gate in CI.
func TestDiff(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "commit.gpgsign=false"}, args...)...)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	if err := os.Mkdir("features", 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "features", "pay.yaml", twoStreamDefinitions)
	writeFile(t, "features", "pay_test.yaml", "tests: none")
	git("init", "-q")
	git("add", ".")
	git("commit", "-q", "-m", "first")
	for _, old := range []string{"HEAD:features", "HEAD:features/pay.yaml", "features"} {
		out, err := weir(t, "diff", old, "features")
		if err != nil || out != "nothing changes but perhaps descriptions\n" {
			t.Errorf("%s: %v\n%s", old, err, out)
		}
	}
	writeFile(t, "features", "pay.yaml", strings.Replace(twoStreamDefinitions, "SUM(1h", "SUM(1h, pay, amount, user, where='amount > 1')\n  more: SUM(2h", 1))
	out, err := weir(t, "diff", "HEAD:features", "features")
	if err == nil || exitCode(err) != 2 || message(err) != "weir: services answer with 1 feature, which would lose state: paid" {
		t.Errorf("%v", err)
	}
	if !strings.Contains(out, "  ~ paid: begins anew: whole after 1h (in risk)\n") || !strings.Contains(out, "  + more: ") {
		t.Error(out)
	}
	out, err = weir(t, "diff", "HEAD:features", "features", "--json")
	var told struct {
		Features []struct{ Name, State string }
	}
	if exitCode(err) != 2 || json.Unmarshal([]byte(out), &told) != nil || len(told.Features) != 2 || told.Features[1].State != "none" {
		t.Errorf("%v\n%s", err, out)
	}

	writeFile(t, "features", "pay.yaml", "streams: {")
	git("commit", "-q", "-am", "bad")
	for _, b := range []struct{ args, want string }{
		{"HEAD~1:features HEAD:features", "HEAD:features/pay.yaml:2:1: bad YAML: did not find expected node content"},
		{"none:features features", "weir: none:features: fatal: not a valid object name: none"},
		{"HEAD:nothing features", "weir: HEAD:nothing: fatal: pathspec 'nothing' did not match any files"},
		{"nowhere features", "nowhere: cannot read definitions: no such file or directory"},
		{"features", "weir: accepts 2 arg(s), received 1"},
	} {
		_, err := weir(t, append([]string{"diff"}, strings.Fields(b.args)...)...)
		if err == nil || exitCode(err) != 1 || message(err) != b.want {
			t.Errorf("%s\ngot  %v\nwant %s", b.args, err, b.want)
		}
	}
	if left, err := filepath.Glob(filepath.Join(os.TempDir(), "weir-diff-*")); err != nil || len(left) > 0 {
		t.Errorf("folders are left: %v, %v", left, err)
	}
}
