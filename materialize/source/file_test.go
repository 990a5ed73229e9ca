package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A folder means its files, also if its name looks like a pattern, which matches nothing.
func TestFilesOfAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history [2026]")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.csv", "a.ndjson.gz", "_SUCCESS"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(folder, "a.ndjson.gz"), filepath.Join(folder, "b.csv")}
	if files, err := Files(t.Context(), folder); err != nil || !slices.Equal(files, want) {
		t.Errorf("got %q, error %v; want %q", files, err, want)
	}
}
