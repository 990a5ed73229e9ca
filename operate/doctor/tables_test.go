package doctor

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/features/definition"
)

// A file that a process could not read is found before it starts.
func TestTables(t *testing.T) {
	folder := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("good.csv", "id,risky\na,true\nb,false\n")
	put("bad.csv", "id,risky\na,true,x\n")
	put("many.csv", "id,risky\na,true\nb,false\n")
	put("tables.yaml", `
tables:
  bad: {file: bad.csv, key: id, fields: {risky: bool}}
  gone: {file: gone.csv, key: id, fields: {risky: bool}}
  good: {file: good.csv, key: id, fields: {risky: bool}}
  many: {file: many.csv, key: id, fields: {risky: bool}, max_rows: 1}
  topic: {topic: rows, key: id, fields: {risky: bool}}
`)
	r, err := definition.Load(filepath.Join(folder, "tables.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	const do = ": correct the file: a process does not become ready without it"
	want := []string{
		"FAIL FOLDER/bad.csv:2: wrong number of fields" + do,
		"FAIL open FOLDER/gone.csv: no such file or directory" + do,
		"OK 2 rows in FOLDER/good.csv",
		"FAIL table many has more than 1 rows, its max_rows: the table is too large" + do,
	}
	var got []string
	for _, line := range lines(Tables(t.Context(), r.Tables), "table ") {
		got = append(got, strings.ReplaceAll(line, folder, "FOLDER"))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
