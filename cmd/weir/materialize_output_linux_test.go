package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// A training set may have what only some may read: the umask says who, and a file that is replaced keeps its mode.
func TestMaterializeKeepsOthersOut(t *testing.T) {
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
