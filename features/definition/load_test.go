package definition

import (
	"bufio"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
)

var update = flag.Bool("update", false, "rewrite the files that tests compare with")

// wants are the findings that a file of bad definitions expects, from its first lines: "# want:
// line:column: message".
func wants(t *testing.T, file string) []string {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var wants []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		want, ok := strings.CutPrefix(lines.Text(), "# want: ")
		if !ok {
			break
		}
		wants = append(wants, filepath.Base(file)+":"+want)
	}
	return wants
}

func TestBadDefinitions(t *testing.T) {
	files, _ := filepath.Glob("testdata/bad/*.yaml")
	if len(files) < 40 {
		t.Fatalf("found only %d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			want := wants(t, file)
			if len(want) == 0 {
				t.Fatal("the file does not say which findings it should have")
			}
			r, err := LoadFS(os.DirFS(filepath.Dir(file)), filepath.Base(file))
			if r != nil || err == nil {
				t.Fatal("the definitions were accepted")
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoodDefinitions(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	for _, file := range append(files, "../../config/features") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r, err := Load(file)
			if err != nil {
				t.Fatal(err)
			}
			checkRoundTrip(t, r)
		})
	}
}

// A registry keeps the texts that it was loaded from, which compile to the same again. No other file
// is read for them.
func TestLoadFiles(t *testing.T) {
	files, _ := filepath.Glob("testdata/good/*.yaml")
	schemas := 0
	for _, file := range append(files, "../../config/features") {
		r, err := Load(file)
		if err != nil {
			t.Fatal(err)
		}
		again, err := LoadFiles(r.Files)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if again.Version() != r.Version() || again.Plan().Version != r.Plan().Version {
			t.Errorf("%s: version %s, plan %s; loaded from its texts version %s, plan %s", file, r.Version(), r.Plan().Version, again.Version(), again.Plan().Version)
		}
		if diff := cmp.Diff(r.Files, again.Files); diff != "" {
			t.Errorf("%s: texts (-loaded +loaded from texts):\n%s", file, diff)
		}
		schemas += len(r.Files.Schemas)
		if len(r.Files.Schemas) > 0 {
			lacking := r.Files
			lacking.Schemas = nil
			if _, err := LoadFiles(lacking); err == nil || !strings.Contains(err.Error(), ": file does not exist") {
				t.Errorf("%s without the files that it names: got error %v", file, err)
			}
		}
	}
	if schemas == 0 {
		t.Error("no file names a schema")
	}
}

// A file that is named twice is kept once.
func TestFilesOfASharedSchema(t *testing.T) {
	const stream = "{topic: %s, format: {type: avro, framing: none, schema: ./s.avsc}, timestamp: at, fields: {user: string}}\n"
	definitions := "streams:\n  a: " + strings.Replace(stream, "%s", "a", 1) + "  b: " + strings.Replace(stream, "%s", "b", 1) + "features: {f: 'COUNT(1d, a, user)'}\n"
	const schema = `{"type": "record", "name": "r", "fields": [{"name": "at", "type": "long"}, {"name": "user", "type": "string"}]}`
	r, err := LoadFS(fstest.MapFS{"d/a.yaml": {Data: []byte(definitions)}, "d/s.avsc": {Data: []byte(schema)}}, "d")
	if err != nil {
		t.Fatal(err)
	}
	want := features.Files{
		Definitions: []features.File{{Path: "d/a.yaml", Text: definitions}},
		Schemas:     []features.File{{Path: "d/s.avsc", Text: schema}},
	}
	if diff := cmp.Diff(want, r.Files); diff != "" {
		t.Errorf("sources (-want +got):\n%s", diff)
	}
}

func TestLoadNamesBothLocationsOfADuplicate(t *testing.T) {
	fsys := fstest.MapFS{
		"d/b.yml":        {Data: []byte("features:\n  f: COUNT(7d, tx, user)\n")},
		"d/a.yaml":       {Data: []byte("streams:\n  tx: {topic: t, timestamp: ts, fields: {user: string}}\nfeatures:\n  f: COUNT(1d, tx, user)\n")},
		"d/notes.txt":    {Data: []byte("not YAML: [")},
		"d/sub.yaml/x":   {Data: []byte("not read")},
		"services.yaml":  {Data: []byte("services:\n  s: [f, g]\n")},
		"empty/note.txt": {},
	}
	_, err := LoadFS(fsys, "services.yaml", "d", "missing.yaml", "empty")
	want := `d/b.yml:2:3: duplicate feature "f"; it is already defined at d/a.yaml:4:3
empty: no *.yaml or *.yml file in the folder
missing.yaml: cannot read definitions: file does not exist
services.yaml:2:10: unknown feature "g"; known: f`
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLoadSeveralFiles(t *testing.T) {
	fsys := fstest.MapFS{
		"a.yaml": {Data: []byte("services:\n  s: [f]\n")},
		"b.yaml": {Data: []byte("features:\n  f: COUNT(1d, tx, user)\n")},
		"c.yaml": {Data: []byte("streams:\n  tx: {topic: t, timestamp: ts, fields: {user: string}}\n")},
	}
	r, err := LoadFS(fsys, ".")
	if err != nil {
		t.Fatal(err)
	}
	s, ok := r.Service("s")
	f, _ := r.Feature("f")
	if !ok || len(s.Features) != 1 || s.Features[0] != f || f.Stream != r.Streams[0] {
		t.Errorf("service %+v does not consist of feature %+v", s, f)
	}
}

// A file is loaded once, however often the paths lead to it.
func TestLoadAFileOnce(t *testing.T) {
	fsys := fstest.MapFS{"d/a.yaml": {Data: []byte("streams:\n  tx: {topic: t, timestamp: ts, fields: {user: string}}\n")}}
	r, err := LoadFS(fsys, "d", "d/a.yaml", "d")
	if err != nil || len(r.Streams) != 1 || len(r.Files.Definitions) != 1 {
		t.Errorf("got %+v, error %v; want one stream of one file", r, err)
	}
}

func TestLoadMissingPath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none")
	_, err := Load(path)
	if want := path + ": cannot read definitions: no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// FuzzLoad: no definitions break the loader, and those that it accepts can be explained and written
// in canonical form.
func FuzzLoad(f *testing.F) {
	for _, pattern := range []string{"testdata/*/*.yaml", "../../config/features/*.yaml"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := parse(string(data))
		if err != nil {
			if findings, ok := err.(Findings); !ok || len(findings) == 0 {
				t.Fatalf("the error is not Findings: %v", err)
			}
			return
		}
		var text strings.Builder
		cost.Explain(r).WriteText(&text)
		checkRoundTrip(t, r)
	})
}

// The features of a file are known even if something is wrong in it.
func TestNamesIn(t *testing.T) {
	for text, want := range map[string]string{
		"features: {b: 'COUNT(1h, none, user)', a: 'SUM('}": "a b",
		"streams: {}":      "",
		"features: [a}":    "",
		"features: [a]":    "",
		"# nothing at all": "",
	} {
		if got := strings.Join(NamesIn("a.yaml", []byte(text)), " "); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
