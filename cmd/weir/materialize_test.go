package main

import (
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/weir-stream/weir/materialize"
)

const trainingDefinitions = `
streams:
  pay:
    topic: pay
    timestamp: at
    id: id
    fields: {user: string, amount: decimal}
features:
  paid: SUM(1h, pay, amount, user)
`

const trainingEvents = "id,at,user,amount\na,1700000000000,u,1.1\nb,1700000001000,u,2\n"

// writeFile makes a file in a folder; one ending in .gz is compressed.
func writeFile(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	var out io.WriteCloser = file
	if filepath.Ext(name) == ".gz" {
		out = gzip.NewWriter(file)
	}
	_, err = io.WriteString(out, text)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return path
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var in io.Reader = file
	if filepath.Ext(path) == ".gz" {
		if in, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	text, err := io.ReadAll(in)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestMaterialize(t *testing.T) {
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", trainingDefinitions)
	lines := `{"id":"a","at":1700000000000,"user":"u","amount":1.1}` + "\n" + `{"id":"b","at":1700000001000,"user":"u","amount":2}`
	for _, input := range []string{
		writeFile(t, dir, "in.csv", trainingEvents), writeFile(t, dir, "in.csv.gz", trainingEvents),
		writeFile(t, dir, "in.ndjson", lines), writeFile(t, dir, "in.ndjson.gz", lines),
	} {
		for _, output := range []string{"out.csv", "out.csv.gz"} {
			output = filepath.Join(dir, output)
			p := start(t, "materialize", "--features", definitions, "--stream", "pay", "--input", input, "--output", output, "--columns", "amount,paid")
			if err := p.wait(t); err != nil {
				t.Fatal(input, err)
			}
			if got, want := readFile(t, output), "id,amount,paid\na,1.1,1.1\nb,2,3.1\n"; got != want {
				t.Errorf("%s to %s:\n%s\nwant\n%s", input, output, got, want)
			}
			if want := regexp.MustCompile(`^2 events in \S+, \d+/s; 0 values reached a cap\n$`); !want.MatchString(p.err.String()) {
				t.Errorf("it says %q, want %s", p.err.String(), want)
			}
		}
	}
}

// A Parquet file is one to the tools that read it.
func TestMaterializeParquet(t *testing.T) {
	dir := t.TempDir()
	definitions, input := writeFile(t, dir, "features.yaml", trainingDefinitions), writeFile(t, dir, "in.csv", trainingEvents)
	output := filepath.Join(dir, "out.parquet")
	if _, err := weir(t, "materialize", "--features", definitions, "--stream", "pay", "--input", input, "--output", output); err != nil {
		t.Fatal(err)
	}
	type row struct {
		ID   string `parquet:"id"`
		Paid *int64 `parquet:"paid,optional,decimal(2:18)"`
	}
	rows, err := parquet.ReadFile[row](output)
	if err != nil {
		t.Fatal(err)
	}
	paid := []int64{110, 310}
	if diff := cmp.Diff([]row{{"a", &paid[0]}, {"b", &paid[1]}}, rows); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestMaterializeBadUse(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "features.yaml", trainingDefinitions)
	writeFile(t, dir, "in.csv", trainingEvents)
	writeFile(t, dir, "bad.csv", trainingEvents+"c,1700000002000,u,x\n")
	writeFile(t, dir, "great.csv", trainingEvents+"c,1700000002000,u,20000000000000000\n")
	writeFile(t, dir, "old.parquet", "PAR1")
	if err := os.WriteFile(filepath.Join(dir, "plain.csv.gz"), []byte(trainingEvents), 0o600); err != nil {
		t.Fatal(err)
	}
	old := writeFile(t, dir, "out.csv", "what was there")
	for _, b := range []struct{ args, want string }{
		{"", `weir: required flag(s) "features", "input", "output", "stream" not set`},
		{"--features DIR/none.yaml --stream pay --input DIR/in.csv --output DIR/out.csv", "DIR/none.yaml: cannot read definitions: no such file or directory"},
		{"--features DIR --stream pa --input DIR/in.csv --output DIR/out.csv", `weir: --stream: unknown stream "pa"; did you mean "pay"?`},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.csv --columns paid,usr", `weir: --columns: unknown feature or field "usr" of stream pay; did you mean "user"?`},
		{"--features DIR --stream pay --input DIR/none.csv --output DIR/out.csv", "weir: --input: open DIR/none.csv: no such file or directory"},
		{"--features DIR --stream pay --input DIR/features.yaml --output DIR/out.csv", "weir: --input: DIR/features.yaml is none of .csv, .ndjson, .csv.gz and .ndjson.gz"},
		{"--features DIR --stream pay --input DIR/plain.csv.gz --output DIR/out.csv", "weir: --input: DIR/plain.csv.gz: gzip: invalid header"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.txt", "weir: --output: DIR/out.txt is none of .csv, .csv.gz and .parquet"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.gz", "weir: --output: DIR/out.gz is none of .csv, .csv.gz and .parquet"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/out.parquet.gz", "weir: --output: DIR/out.parquet.gz: a .parquet is compressed inside; leave out .gz"},
		{"--features DIR --stream pay --input DIR/in.parquet --output DIR/out.csv", "weir: --input: open DIR/in.parquet: no such file or directory"},
		{"--features DIR --stream pay --input DIR/old.parquet --output DIR/out.csv", "weir: --input: DIR/old.parquet: a .parquet can only be written; events are read from .csv and .ndjson, each also .gz"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/in.csv", "weir: --output: DIR/in.csv is the input"},
		{"--features DIR --stream pay --input DIR/in.csv --output DIR/none/out.csv", "weir: --output: open DIR/none/out.csv: no such file or directory"},
		{"--features DIR --stream pay --input DIR/bad.csv --output DIR/out.parquet", `weir: DIR/bad.csv:4: column amount: expected a number, found "x"`},
		{"--features DIR --stream pay --input DIR/great.csv --output DIR/out.parquet --columns amount",
			"weir: DIR/great.csv:4: column amount: 20000000000000000 has more than the 18 digits of a decimal in Parquet, 2 of them behind the point; write a .csv"},
		{"--features DIR --stream pay --input DIR/bad.csv --output DIR/out.csv", `weir: DIR/bad.csv:4: column amount: expected a number, found "x"`},
	} {
		t.Run(b.args, func(t *testing.T) {
			_, err := weir(t, append([]string{"materialize"}, strings.Fields(strings.ReplaceAll(b.args, "DIR", dir))...)...)
			if err == nil {
				t.Fatal("no error")
			}
			if got, want := message(err), strings.ReplaceAll(b.want, "DIR", dir); got != want {
				t.Errorf("\ngot  %s\nwant %s", got, want)
			}
		})
	}
	if got := readFile(t, old); got != "what was there" {
		t.Errorf("a failure has left %q in the output", got)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 7 {
		t.Errorf("a failure has left files behind: %v, %v", files, err)
	}
}

// On a terminal a bar moves in its place; elsewhere there is a line now and
// then.
func TestProgress(t *testing.T) {
	for _, bar := range []bool{true, false} {
		file, err := os.Open(writeFile(t, t.TempDir(), "in.csv", strings.Repeat("x", 1000)))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var screen strings.Builder
		now := time.Unix(1_700_000_000, 0)
		p := newProgress(&screen, file, func() time.Time { return now })
		want := " 50%  200000 events, 10000/s\n2 events in 20s, 0/s; 1 value reached a cap; 3 events not of the stream\n"
		if bar {
			p.bar, p.every = true, barEvery
			want = "\r[===============               ]  50%  200000 events, 10000/s\x1b[K" +
				"\r\x1b[K2 events in 20s, 0/s; 1 value reached a cap; 3 events not of the stream\n"
		}
		if _, err := io.ReadFull(p, make([]byte, 500)); err != nil {
			t.Fatal(err)
		}
		for range 2 * lookEvery { // the second look comes too early to show more
			now = time.Unix(1_700_000_020, 0)
			p.show(materialize.Summary{Events: 200_000})
		}
		p.end(materialize.Summary{Events: 2, Capped: 1, Passed: 3}, nil)
		if screen.String() != want {
			t.Errorf("bar %v\ngot  %q\nwant %q", bar, screen.String(), want)
		}
	}
}
