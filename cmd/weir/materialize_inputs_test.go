package main

import (
	"path/filepath"
	"testing"
)

// A file that is named twice, by any names, would count twice, and is an error; two streams may read the same file.
func TestMaterializeSameFileTwice(t *testing.T) {
	dir := t.TempDir()
	definitions := writeFile(t, dir, "features.yaml", twoStreamDefinitions)
	file := writeFile(t, dir, "in.csv", "id,at,user,amount,ip\na,1700000000000,u,1,i\n")
	enveloped := writeFile(t, dir, "in.ndjson", `{"topic":"pay","value":{"id":"a","at":1700000000000,"user":"u","amount":1}}`)
	twice := func(one, other string) []string {
		return []string{"materialize", "--features", definitions, "--stream", "pay", "--input", one, "--input", other, "--columns", "paid", "--output", "-"}
	}
	look(t, "--input: "+file+" is an input twice, so its events would count twice", twice("pay="+filepath.Join(dir, "*.csv"), file)...)
	look(t, "--input: "+enveloped+" is an input twice, so its events would count twice", twice(enveloped, "pay="+enveloped)...)
	if out, err := weir(t, twice(file, "login="+file)...); err != nil || out != "id,paid\na,1\n" {
		t.Errorf("two streams of a file: got %q, %v", out, err)
	}
}

// A record time that does not matter is an error, and not ignored.
func TestMaterializeNeedlessRecordTime(t *testing.T) {
	dir := t.TempDir()
	look(t, "--record-time needs --as served: otherwise it does not matter when a record arrived", "materialize",
		"--features", writeFile(t, dir, "features.yaml", trainingDefinitions), "--input", writeFile(t, dir, "in.csv", trainingEvents),
		"--record-time", "at", "--output", "-")
}
