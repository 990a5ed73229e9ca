package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/objectstore"
)

// Events and rows may be in an object store; the training set is as from files.
func TestMaterializeFromAnObjectStore(t *testing.T) {
	dir, b := t.TempDir(), objectstore.New(t)
	definitions := writeFile(t, dir, "features.yaml", trainingDefinitions)
	lines := strings.SplitAfter(trainingEvents, "\n")
	b.Put(t, "pay/day=1/a.csv.gz", []byte(read(t, writeFile(t, dir, "a.csv.gz", lines[0]+lines[1]))))
	b.Put(t, "pay/day=2/b.csv", []byte(lines[0]+lines[2]))
	b.Put(t, "pay/day=2/_SUCCESS", nil)
	spine := b.Put(t, "spine.csv", []byte("user,at,label\nu,1700000000500,1\nu,1700000001500,0\n"))
	output := filepath.Join(dir, "out.csv")
	args := []string{"materialize", "--features", definitions, "--input", "pay=" + b.URL("pay/day=*/*"), "--spine", spine, "--output", output}
	for _, before := range []objectstore.Handler{nil, objectstore.CutAfter(20)} {
		b.Before(before)
		if _, err := weir(t, args...); err != nil {
			t.Fatal(err)
		}
		if got, want := readFile(t, output), "user,at,label,paid\nu,1700000000500,1,1.1\nu,1700000001500,0,3.1\n"; got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	args[4] = b.URL("none/")
	look(t, "--input: "+b.URL("none/")+": there is no such object, and no folder with objects", args...)
	args[4] = "pay=" + b.URL("pay/day=2")
	args[6] = b.URL("none.csv")
	look(t, "--spine: "+b.URL("none.csv")+": there is no such object, or no such bucket", args...)
}
