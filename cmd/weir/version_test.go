package main

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	stamped := &debug.BuildInfo{
		Main: debug.Module{Version: "v1.2.3"},
		Settings: []debug.BuildSetting{
			{Key: "vcs.revision", Value: "abc"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
		},
	}
	machine := ", " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		info                  *debug.BuildInfo
		release, commit, date string
		want                  string
	}{
		{nil, "", "", "", "weir (unknown)"},
		{stamped, "", "", "", "weir 1.2.3, commit abc of 2026-01-02T03:04:05Z, with changes"},
		{&debug.BuildInfo{}, "2.0.0", "def", "2026-11-21T10:00:00Z", "weir 2.0.0, commit def of 2026-11-21T10:00:00Z"},
		{&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, "", "", "", "weir (devel)"},
	} {
		if got := describe(c.info, c.release, c.commit, c.date); got != c.want+machine {
			t.Errorf("got  %s\nwant %s", got, c.want+machine)
		}
	}
}

// The names in the release flags are those of variables: the linker ignores unknown ones silently.
func TestReleaseFlags(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "weir")
	flags := "-X main.release=9.8.7 -X main.commit=abc -X main.date=2026-01-02T03:04:05Z"
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags", flags, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(binary, "version").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "weir 9.8.7, commit abc of 2026-01-02T03:04:05Z, go") {
		t.Errorf("weir version: got %q, error %v", out, err)
	}
	for _, file := range []string{"../../Dockerfile", "../../.goreleaser.yaml", "../../Makefile"} {
		for _, name := range []string{"main.release=", "main.commit=", "main.date="} {
			if !strings.Contains(read(t, file), "-X "+name) {
				t.Errorf("%s does not set %s", file, name)
			}
		}
	}
}
