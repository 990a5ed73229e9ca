package bench

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// BenchmarkSkew applies the same number of events spread evenly, with a tenth of them of one entity, with half of them in
// one partition of each topic, and with half of them scattered over the partitions. It reports the rates relative to the
// even spread, and that of one partition also relative to the scattered events: the events of a user are then in as many
// places, so that a batch has as many keys. Run it once: -benchtime 1x.
func BenchmarkSkew(b *testing.B) {
	for b.Loop() {
		even, scattered, onePartition := rateOf(b, skew{}), rateOf(b, skew{scattered: 0.5}), rateOf(b, skew{onePartition: 0.5})
		b.ReportMetric(even, "even-events/s")
		b.ReportMetric(rateOf(b, skew{oneEntity: 0.1})/even, "one-entity-ratio")
		b.ReportMetric(scattered/even, "scattered-ratio")
		b.ReportMetric(onePartition/even, "one-partition-ratio")
		b.ReportMetric(onePartition/scattered, "one-partition-of-scattered-ratio")
	}
}

// rateOf returns the events a second that Weir applies.
func rateOf(b *testing.B, s skew) float64 {
	broker, feed := loadedBroker(b, s)
	server := redistest.New(b, redistest.Options{})
	weir := side{name: "weir", server: server, redis: server.Client(b), addr: server.Addr()}
	weir.load(b, broker.Addrs(), feed)
	for _, f := range weir.figures[:4] {
		fmt.Printf("%+v: %s %.5g\n", s, f.name, f.value)
	}
	server.Kill()
	broker.Kill()
	return weir.rate
}
