package source

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
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

// A file that is paused has nothing open, and is read from its beginning, unless it was changed meanwhile.
func TestPause(t *testing.T) {
	stream := goldenStream(t)
	for _, name := range []string{"in.csv.gz", "in.ndjson.zst", "in.ndjson", "in.parquet", "in.avro"} {
		path := write(t, name, goldenFiles(t)[name])
		goroutines := runtime.NumGoroutine()
		f, err := Open(t.Context(), path, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		if f.Enveloped() {
			t.Errorf("%s is taken for envelopes", name)
		}
		if err := f.Pause(); err != nil || f.file != nil || f.in != nil || runtime.NumGoroutine() > goroutines {
			t.Errorf("%s: a paused file is still open; error %v", name, err)
		}
		if read, size := f.Read(); read != 0 || size == 0 || !f.Same(path) {
			t.Errorf("%s: a paused file has read %d of %d bytes", name, read, size)
		}
		events, err := f.Events(stream)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for e := (Event{}); err == nil; n++ {
			err = events.Next(&e)
		}
		if err != io.EOF || n != 4 {
			t.Errorf("%s: read %d events and error %v, want 3 and the end", name, n-1, err)
		}
		if err := f.Pause(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Events(stream); fmt.Sprint(err) != path+": the file was changed meanwhile: it must stay as it is" {
			t.Errorf("a changed file: got error %v", err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Once a file has been read, errors about its events have the same places.
func TestPlacesOf(t *testing.T) {
	for name, content := range goldenFiles(t) {
		f, err := Open(t.Context(), write(t, name, content), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		events, err := f.Events(goldenStream(t))
		for e := (Event{}); err == nil; {
			err = events.Next(&e)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		places := PlacesOf(events)
		if got, want := places.At(2, io.ErrNoProgress), events.At(2, io.ErrNoProgress); got.Error() != want.Error() || places == Places(events) {
			t.Errorf("%s: got %v, want %v, without the source", name, got, want)
		}
	}
}

// A file is the same by any name, as it was when it was opened.
func TestSameFile(t *testing.T) {
	path := write(t, "in.csv", []byte(golden))
	link := path + ".again.csv"
	if err := os.Link(path, link); err != nil {
		t.Fatal(err)
	}
	other := write(t, "other.csv", []byte(golden))
	var files []*File
	for _, name := range []string{path, link, other, Stdin} {
		f, err := Open(t.Context(), name, strings.NewReader(""), CSV)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files = append(files, f)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, true, false, false} {
		if got := files[0].Is(files[i]); got != want || files[i].Is(files[0]) != want {
			t.Errorf("%s is %s: %v, want %v", files[0].Name, files[i].Name, got, want)
		}
	}
	if !files[3].Is(files[3]) {
		t.Error("the standard input is not the same as itself")
	}
}
