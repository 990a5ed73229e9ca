package pipeline

import (
	"context"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline/fetch"
)

// Records that were fetched before their partition is read again from further
// back do not count: they would take the progress past those between.
func TestFetchedBeforeARewindIsDropped(t *testing.T) {
	ctx := context.Background()
	broker := testkit.Kfake(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{
		Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport, RequiredAcks: kafka.RequireAll,
	}
	defer writer.Close()
	if err := writer.WriteMessages(ctx, make([]kafka.Message, 10)...); err != nil {
		t.Fatal(err)
	}
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
	defer poller.Close()
	p := &partition{Partition: kinds.Partition{Topic: "payments"}, position: 8}
	w := &worker{
		poller: poller, current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()),
		partitions: map[kinds.Partition]*partition{p.Partition: p},
	}
	fetched := func() *fetch.Partition {
		t.Helper()
		part, err := poller.Poll(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return part
	}
	poller.Add("payments", 0, 8)
	old := fetched()
	w.abandon(p)
	p.position = 3
	poller.Add("payments", 0, 3)
	if err := w.take(ctx, fetchResult{partition: old}); err != nil || w.fetched != nil {
		t.Errorf("records from offset 8 are taken where those from 3 come next (%v)", err)
	}
	if err := w.take(ctx, fetchResult{partition: fetched()}); err != nil || w.fetched == nil || w.fetched.Offset != 3 {
		t.Errorf("the records from offset 3 are not taken (%v)", err)
	}
}
