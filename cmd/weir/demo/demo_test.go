package demo

import (
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/embedded"
)

// The demo's broker drops records beyond its retention, however long it runs.
func TestDemoTopicsHaveRetention(t *testing.T) {
	broker, err := embedded.Kafka(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.Close()
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...)}
	if err := createDemoTopics(t.Context(), client, []string{"transactions"}); err != nil {
		t.Fatal(err)
	}
	const batches, size = 40, 400_000 // four times the retention
	for range batches {
		_, err := client.Produce(t.Context(), &kafka.ProduceRequest{
			Topic: "transactions", RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Time: time.Now(), Value: kafka.NewBytes(make([]byte, size))}),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	broker.ApplyRetention()
	found, err := client.ListOffsets(t.Context(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{"transactions": {kafka.FirstOffsetOf(0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept := (batches - found.Topics["transactions"][0].FirstOffset) * size; kept > 6<<20 || kept == 0 {
		t.Errorf("%d bytes of a partition are kept, want at most 6 MiB and some", kept)
	}
}
