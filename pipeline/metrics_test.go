package pipeline

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// An alert sees a counter rise only if the counter existed before.
func TestAlertCountersStartAtZero(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	newMetrics(registry).assigned([]state.Partition{{Topic: "payments"}, {Topic: "payments", ID: 1}, {Topic: "logins"}})
	want := `
# HELP weir_assigned_partitions Partitions assigned to this processor.
# TYPE weir_assigned_partitions gauge
weir_assigned_partitions 3
# HELP weir_lost_records_total Records that were not applied and are no longer in the log, by topic.
# TYPE weir_lost_records_total counter
weir_lost_records_total{topic="logins"} 0
weir_lost_records_total{topic="payments"} 0
# HELP weir_rewinds_total Partitions read again because the store went back in time or was spread over more shards, or another owner, plan or leader took the partition, by topic.
# TYPE weir_rewinds_total counter
weir_rewinds_total{topic="logins"} 0
weir_rewinds_total{topic="payments"} 0
`
	err := testutil.GatherAndCompare(registry, strings.NewReader(want),
		"weir_assigned_partitions", "weir_lost_records_total", "weir_rewinds_total")
	if err != nil {
		t.Error(err)
	}
}

// A look at the log takes a while. What it finds does not replace the lag after a fetch that came meanwhile.
func TestLagOfALookThatIsOvertaken(t *testing.T) {
	t.Parallel()
	g := newMetrics(prometheus.NewRegistry()).lagOf(state.Partition{Topic: "payments"})
	for name, fetched := range map[string]bool{"alone": false, "overtaken": true} {
		g.set(fetch.Lag{})
		sets := g.soFar()
		if fetched {
			g.set(fetch.Lag{Records: 2})
		}
		g.measured(&fetch.Log{Stable: 100, End: 107}, 70, sets)
		if got, want := testutil.ToFloat64(g.records), map[bool]float64{false: 37, true: 2}[fetched]; got != want {
			t.Errorf("%s: the lag is %v, want %v", name, got, want)
		}
	}
}
