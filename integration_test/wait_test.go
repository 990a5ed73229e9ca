package integration_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/client"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Who has written an event and waits for it finds it in the answer.
func TestReadYourOwnEvent(t *testing.T) {
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	definitions, err := filepath.Abs("testdata/pending.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := s.start("processor,api", "--features", definitions, "--api.timeout", "1m")
	w.awaitReady()
	ask := client.New(w.url)
	now := time.Now()
	for n := range 50 {
		event := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u1","amount":%[1]d.50}`, n, now.UnixMilli())
		records, err := s.producer.write([]generate.Event{{Topic: "transactions", Key: []byte("u1"), Value: event, Timestamp: now.UnixMilli()}})
		if err != nil {
			t.Fatal(err)
		}
		r := records[0]
		answer, err := ask.Query(t.Context(), client.Question{
			Features: []string{"count", "ever"}, Entities: []client.Entity{{"user_id": "u1"}}, At: now,
			WaitFor: &client.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timeout: 20 * time.Second},
		})
		if err != nil {
			t.Fatal(err)
		}
		for name, f := range answer.Results[0].Features {
			if got, _ := f.Int(); !answer.Applied || got != int64(n+1) {
				t.Fatalf("event %d: %s is %d, applied %v; want %d, applied", n, name, got, answer.Applied, n+1)
			}
		}
	}
}
