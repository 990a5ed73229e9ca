package server

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestArchiveIsMadeOnce(t *testing.T) {
	home, starts := t.TempDir(), 0
	var start func(dir, flag string) (*Process, error)
	start = func(dir, flag string) (*Process, error) {
		starts++
		if flags := Archive(home, start); flags != nil {
			t.Errorf("%q while it is made, want no flag", flags)
		}
		_, file, _ := strings.Cut(flag, "=")
		p := NewProcess(dir, "sh", "-c", `trap 'echo classes > "$0"; exit 143' TERM; echo > ready; while :; do sleep 0.01; done`, file)
		if err := p.Start(); err != nil {
			return nil, err
		}
		detail, ok := Poll(StartTimeout, func() (bool, string) {
			_, err := os.Stat(filepath.Join(dir, "ready"))
			return err == nil, "not ready"
		})
		if !ok {
			t.Error(detail)
		}
		return p, nil
	}
	flags := Archive(home, start)
	if len(flags) != 1 || !strings.HasPrefix(flags[0], "-XX:SharedArchiveFile="+home) {
		t.Fatalf("%q, want the flag of the archive", flags)
	}
	if again := Archive(home, start); !slices.Equal(again, flags) || starts != 1 {
		t.Errorf("%q after %d starts, want %q after 1", again, starts, flags)
	}
	_, file, _ := strings.Cut(flags[0], "=")
	if left, _ := filepath.Glob(filepath.Join(home, "*")); !slices.Equal(left, []string{file}) {
		t.Errorf("%q are left, want only %s", left, file)
	}
}

// A server that ends without an archive, and one that does not start, are not tried again with each start.
func TestArchiveThatFailsIsNotTriedAgain(t *testing.T) {
	for name, start := range map[string]func(dir string) (*Process, error){
		"no archive": func(dir string) (*Process, error) {
			p := NewProcess(dir, "sh", "-c", "exit 143")
			return p, p.Start()
		},
		"no start": func(string) (*Process, error) { return nil, errors.New("no java") },
	} {
		home, starts := t.TempDir(), 0
		for range 2 {
			if flags := Archive(home, func(dir, _ string) (*Process, error) { starts++; return start(dir) }); flags != nil {
				t.Errorf("%s: %q, want no flag", name, flags)
			}
		}
		if starts != 1 {
			t.Errorf("%s: %d starts, want 1", name, starts)
		}
	}
}
