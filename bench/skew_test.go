package bench

import (
	"fmt"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// BenchmarkSkew applies the same number of events spread evenly, with a tenth of them of one entity, with half of
// them in one partition of each topic, because half of all users are there, and with half of them in one partition because
// their records have one key: then the events of a user are in two places, and a batch has more keys. It reports the rates
// relative to the even spread. Run it once: -benchtime 1x.
func BenchmarkSkew(b *testing.B) {
	for b.Loop() {
		even := rateOf(b, skew{})
		b.ReportMetric(even, "even-events/s")
		b.ReportMetric(rateOf(b, skew{oneEntity: 0.1})/even, "one-entity-ratio")
		b.ReportMetric(rateOf(b, skew{onePartition: 0.5})/even, "one-partition-ratio")
		b.ReportMetric(rateOf(b, skew{oneKey: 0.5})/even, "one-key-ratio")
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
