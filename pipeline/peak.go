package pipeline

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// peakAge is for how long a peak counts at the least, in milliseconds; it counts for
// no more than twice as long.
const peakAge = 5 * 60 * 1000

// peak is a gauge of the greatest value of late.
type peak struct {
	gauge prometheus.Gauge

	mu           sync.Mutex
	begun        int64 // when the values of now began, in milliseconds
	now, earlier float64
}

func newPeak(opts prometheus.GaugeOpts) *peak { return &peak{gauge: prometheus.NewGauge(opts)} }

// observe takes in a value of a moment in milliseconds.
func (p *peak) observe(value float64, at int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch age := at - p.begun; {
	case age >= 2*peakAge:
		p.begun, p.earlier, p.now = at, 0, 0
	case age >= peakAge:
		p.begun, p.earlier, p.now = at, p.now, 0
	}
	p.now = max(p.now, value)
	p.gauge.Set(max(p.now, p.earlier))
}
