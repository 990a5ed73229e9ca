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

var update = flag.Bool("update", false, "rewrite the page that lists the metrics")

// helpful matches a metric's name, help and labels in the text of its description.
var helpful = regexp.MustCompile(`^Desc\{fqName: "(weir_[^"]+)", help: ("(?:[^"\\]|\\.)*"), .*variableLabels: \{([^}]*)\}\}$`)

const metricsHead = `# Metrics

Every process serves its metrics at ` + "`/metrics`" + `, in Prometheus' format, beside those of the Go runtime. [Alerts](alerts.md) use
them, and so does the dashboard in
[deploy/grafana](https://github.com/weir-stream/weir/tree/main/deploy/grafana). A name says the unit: ` + "`_seconds`, `_bytes`" + `; what ends
with ` + "`_total`" + ` only grows until the process is restarted.

This page is generated from the metrics of a process: ` + "`go test ./cmd/weir -run MetricsPage -update`" + `.

| metric | labels | is |
| --- | --- | --- |
`

// docs/metrics.md lists the metrics of a process.
func TestMetricsPageIsCurrent(t *testing.T) {
	const file = "../../docs/metrics.md"
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
		var labels []string
		for _, label := range word.FindAllString(m[3], -1) {
			labels = append(labels, "`"+label+"`")
		}
		rows = append(rows, "| `"+m[1]+"` | "+strings.Join(labels, ", ")+" | "+strings.ReplaceAll(help, "|", "\\|")+" |\n")
	}
	if len(rows) < 40 {
		t.Fatalf("a process has only %d metrics", len(rows))
	}
	slices.Sort(rows)
	want := metricsHead + strings.Join(slices.Compact(rows), "")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, read(t, file)); diff != "" {
		t.Errorf("docs/metrics.md (-want +got), rewritten by go test -update:\n%s", diff)
	}
}
