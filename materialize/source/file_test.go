package source

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A folder means its files, also if its name looks like a pattern, which matches nothing. Those without a format are told
// apart, and what other programs write beside their data is left out.
func TestFilesOfAFolder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "history [2026]")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b.csv", "a.ndjson.gz", "_SUCCESS", ".b.csv.crc", "c.json", "README"} {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{filepath.Join(folder, "a.ndjson.gz"), filepath.Join(folder, "b.csv")}
	rest := []string{filepath.Join(folder, "README"), filepath.Join(folder, "c.json")}
	if files, others, err := Files(t.Context(), folder); err != nil || !slices.Equal(files, want) || !slices.Equal(others, rest) {
		t.Errorf("got %q and %q, error %v; want %q and %q", files, others, err, want, rest)
	}
}
