package integration_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A client that has written an event and waits for it finds it in the answer.
func TestReadYourOwnEvent(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	definitions, err := filepath.Abs("testdata/pending.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := s.start("processor,api", "--features", definitions, "--api.timeout", "1m")
	w.awaitReady()
	now := time.Now()
	for n := range 50 {
		event := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u1","amount":%[1]d.50}`, n, now.UnixMilli())
		records, err := s.producer.write([]generate.Event{{Topic: "transactions", Key: []byte("u1"), Value: event, Timestamp: now.UnixMilli()}})
		if err != nil {
			t.Fatal(err)
		}
		reply := queryUser(t, w, question{Features: []string{"count", "ever"}, At: now.UnixMilli(), WaitFor: waitFor(records[0])})
		for name, f := range reply.Results[0].Features {
			if want := fmt.Sprint(n + 1); !reply.Waited.Applied || string(f.Value) != want {
				t.Fatalf("event %d: %s is %s, applied %v; want %s, applied true", n, name, f.Value, reply.Waited.Applied, want)
			}
		}
	}
}

// queryUser asks about u1.
func queryUser(t *testing.T, w *weir, q question) *blackbox.Reply {
	t.Helper()
	q.Entities = []json.RawMessage{json.RawMessage(`{"user_id":"u1"}`)}
	reply, err := blackbox.Query(w.url, q)
	if err != nil {
		t.Fatal(err)
	}
	return reply
}

// waitFor returns the option that makes a question wait for a record, long enough.
func waitFor(r *kgo.Record) *blackbox.Record {
	return &blackbox.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timeout: 50_000}
}
