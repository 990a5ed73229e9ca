package node

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestBuildMetric(t *testing.T) {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(Build{Release: "1.2.3", Revision: "abc"}.metric())
	want := fmt.Sprintf(`
# HELP weir_build_info 1, labelled with the version of the binary, its commit and the Go release.
# TYPE weir_build_info gauge
weir_build_info{goversion=%q,revision="abc",version="1.2.3"} 1
`, runtime.Version())
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}
