package backfill

import (
	"testing"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// A partition may be moved between two turns. Records that were fetched before are not read: those in between would be
// skipped.
func TestRecordsOfAnOldPosition(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport, RequiredAcks: kafka.RequireAll}
	defer writer.Close()
	if err := writer.WriteMessages(t.Context(), make([]kafka.Message, 3)...); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		moved bool
		next  int64
	}{{false, 3}, {true, 0}} {
		poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
		defer poller.Close()
		j := &job{Partition: state.Partition{Topic: "payments"}, steps: []step{{from: 10, to: 20}}} // nothing is mapped
		r := &runner{
			Backfiller: New(Config{MaxEvents: 10, MaxBytes: 1 << 10}), poller: poller, batch: &batch{},
			jobs: map[state.Partition]*job{j.Partition: j},
		}
		poller.Add(j.Topic, j.ID, 0)
		part, err := poller.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.part = part
		r.decoder.Reset(part)
		if c.moved {
			poller.Seek(j.Topic, j.ID, 0)
		}
		if r.take(t.Context()); j.next != c.next || r.part != nil {
			t.Errorf("moved: %v: the next record is %d, want %d; records are kept: %v", c.moved, j.next, c.next, r.part != nil)
		}
	}
}
