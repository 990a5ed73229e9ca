package main

import (
	"flag"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the lists of metrics and commands")

// helpful matches a metric's name, help and labels in the text of its description.
var helpful = regexp.MustCompile(`^Desc\{fqName: "(weir_[^"]+)", help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}\}$`)

// docs/metrics.csv lists the metrics of a process; docs/metrics.md refers to it.
func TestMetricsPageIsCurrent(t *testing.T) {
	t.Parallel()
	const file = "../../docs/metrics.csv"
	var rows []string
	for _, d := range descriptions(t) {
		m := helpful.FindStringSubmatch(d)
		if m == nil {
			continue
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, m[1]+","+strings.Join(word.FindAllString(m[3], -1), " ")+`,"`+strings.ReplaceAll(help, `"`, `""`)+"\"\n")
	}
	if len(rows) < 40 {
		t.Fatalf("a process has only %d metrics", len(rows))
	}
	slices.Sort(rows)
	want := "metric,labels,is\n" + strings.Join(slices.Compact(rows), "")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, read(t, file)); diff != "" {
		t.Errorf("docs/metrics.csv (-want +got), rewritten by go test -update:\n%s", diff)
	}
}
