package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file that is named twice, by any names, would count twice, and is an error; two streams may read the same file.
func TestMaterializeSameFileTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", twoStreamDefinitions)
	file := writeFile(t, dir, "in.csv", "id,at,user,amount,ip\na,1700000000000,u,1,i\n")
	enveloped := writeFile(t, dir, "in.ndjson", `{"topic":"pay","value":{"id":"a","at":1700000000000,"user":"u","amount":1}}`)
	twice := func(one, other string) []string {
		return []string{"materialize", "--features", definitions, "--stream", "pay", "--input", one, "--input", other, "--columns", "paid", "--output", "-"}
	}
	look(t, "--input: "+file+" is an input twice, so its events would count twice", twice("pay="+filepath.Join(dir, "*.csv"), file)...)
	look(t, "--input: "+enveloped+" is an input twice, so its events would count twice", twice(enveloped, "pay="+enveloped)...)
	if out, err := weir(t, twice(file, "login="+file)...); err != nil || out != "id,at,user,paid\na,1700000000000,u,1\n" {
		t.Errorf("two streams of a file: got %q, %v", out, err)
	}
}

// A record time that does not matter is an error, and not ignored.
func TestMaterializeNeedlessRecordTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	look(t, "--record-time needs --as served: otherwise it does not matter when a record arrived", "materialize",
		"--features", writeFile(t, dir, "features.yaml", trainingDefinitions), "--input", writeFile(t, dir, "in.csv", trainingEvents),
		"--record-time", "at", "--output", "-")
}

// A folder may have files of formats that cannot be read, such as .json. Their events are missing, so they are named.
func TestMaterializeNamesFilesLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", trainingDefinitions)
	folder := filepath.Join(dir, "pay")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "1.csv", trainingEvents)
	for left, name := range []string{"_SUCCESS", "2.json", "3.csv.bz2"} {
		writeFile(t, folder, name, "")
		want := ""
		if left > 0 {
			want = folder + ": left out, being none of .csv, .ndjson, .avro and .parquet: " + folder + "/2.json" + []string{"", " and 1 more"}[left-1] + "\n"
		}
		p := start(t, "materialize", "--features", definitions, "--input", folder, "--columns", "paid", "--output", "-")
		if err := p.wait(t); err != nil {
			t.Fatal(err)
		}
		if said, _, _ := strings.Cut(p.err.String(), "2 rows"); said != want {
			t.Errorf("beside %s it is said: %q, want %q", name, said, want)
		}
	}
}

// A feature that cannot be computed for the rows, such as one whose key has no column in the spine, is not left out in
// silence.
func TestMaterializeSaysWhichFeaturesAreLeftOut(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", strings.Replace(trainingDefinitions, "features:", "  login: {topic: login, timestamp: at, fields: {user: string}}\nfeatures:\n  logins: COUNT(1h, login, user)\n  by_amount: COUNT(1h, pay, amount)", 1))
	events := writeFile(t, dir, "pay.csv", trainingEvents)
	spine := writeFile(t, dir, "spine.csv", "at,user\n1700000001000,u\n")
	p := start(t, "materialize", "--features", definitions, "--input", "pay="+events, "--spine", spine, "--output", "-")
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"left out: " + spine + `:1: feature "by_amount" needs amount: unknown column "amount"; known: at, user` + "\n",
		`left out: feature "logins" reads events of stream login, which has no input; add --input login=FILE` + "\n",
	} {
		if !strings.Contains(p.err.String(), want) {
			t.Errorf("it is said:\n%s\nwant %s", p.err.String(), want)
		}
	}
}

// The folders of a partitioned table have names with an equals sign, before which there is no stream.
func TestMaterializeFolderWithEqualsSign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", trainingDefinitions)
	folder := filepath.Join(dir, "dt=2026-01-31")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := writeFile(t, folder, "in.csv", trainingEvents)
	for _, input := range []string{file, "pay=" + file, "pay=" + folder, filepath.Join(dir, "dt=*", "*.csv")} {
		if out := look(t, "", "materialize", "--features", definitions, "--input", input, "--output", "-"); out != "id,at,user,paid\na,1700000000000,u,1.1\nb,1700000001000,u,3.1\n" {
			t.Errorf("%s: got %q", input, out)
		}
	}
}
