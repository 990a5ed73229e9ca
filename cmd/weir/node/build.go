package node

import (
	"runtime"

	"github.com/prometheus/client_golang/prometheus"
)

// Build is what a process is made from.
type Build struct {
	Release  string // version, 1.2.3
	Revision string // hash of the commit; empty if unknown
}

// metric returns 1, labelled with the version of the process.
func (b Build) metric() prometheus.Collector {
	gauge := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_build_info",
		Help: "1, labelled with the version of the binary, its commit and the Go release.",
	}, []string{"version", "revision", "goversion"})
	gauge.WithLabelValues(b.Release, b.Revision, runtime.Version()).Set(1)
	return gauge
}
