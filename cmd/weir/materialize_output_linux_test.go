package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/defined"
)

// A training set may have what only some may read: the umask says who, and a file that is replaced keeps its mode.
func TestMaterializeKeepsOthersOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output := filepath.Join(dir, "out.csv")
	args := []string{"materialize", "--features", writeFile(t, dir, "features.yaml", trainingDefinitions),
		"--input", writeFile(t, dir, "in.csv", trainingEvents), "--output", output}
	modes := func(want fs.FileMode) {
		t.Helper()
		look(t, "", args...)
		info, err := os.Stat(output)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode(); got != want {
			t.Errorf("the mode of the output is %v, want %v", got, want)
		}
	}
	before := syscall.Umask(0o027)
	t.Cleanup(func() { syscall.Umask(before) })
	modes(0o640)
	if err := os.Chmod(output, 0o600); err != nil {
		t.Fatal(err)
	}
	modes(0o600)
	if files, err := filepath.Glob(output + ".*"); err != nil || len(files) > 0 {
		t.Errorf("files are left: %q, %v", files, err)
	}
}

// Each file of a folder of thousands is open while it is read, and not before.
func TestMaterializeOpensOneFileAtATime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 5 {
		writeFile(t, dir, fmt.Sprintf("%d.csv", i), trainingEvents)
		writeFile(t, dir, fmt.Sprintf("%d.ndjson", i), "{}")
	}
	registry := defined.Registry(t, trainingDefinitions)
	o := materializeOptions{inputs: []string{dir}, screen: io.Discard}
	inputs, err := o.allInputs(t.Context(), registry)
	if err != nil || len(inputs) != 10 {
		t.Fatal(inputs, err)
	}
	open := func(want int) {
		t.Helper()
		descriptors, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, d := range descriptors {
			if target, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && strings.HasPrefix(target, dir) {
				n++
			}
		}
		if n != want {
			t.Errorf("%d files are open, want %d", n, want)
		}
	}
	open(0)
	for i := range inputs {
		if _, err := inputs[i].Open(registry.Streams[0]); err != nil {
			t.Fatal(err)
		}
		open(1)
		if err := inputs[i].Close(); err != nil {
			t.Fatal(err)
		}
	}
}
