package integration_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A question with a pending event counts that event once, from before the event is on the bus until
// long after it is applied.
func TestPendingWhileItArrives(t *testing.T) {
	t.Parallel()
	server := redistest.New(t, redistest.Options{})
	s := newScene(t, server.Client(t), "--redis.addresses", server.Addr())
	definitions, err := filepath.Abs("testdata/pending.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := s.start("processor,api", "--features", definitions)
	w.awaitReady()
	now := time.Now().UnixMilli()
	for n := range 20 {
		event := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u1","amount":%[1]d.50}`, n, now)
		q := question{
			Features: []string{"count", "ever", "last"}, Entities: []json.RawMessage{[]byte(`{"user_id":"u1"}`)}, At: now,
		}
		with := q
		with.Pending = fmt.Appendf(nil, `{"stream":"payment","event":%s}`, event)
		ask := func(q question) string {
			answers, err := w.ask(q)
			if err != nil {
				t.Fatal(err)
			}
			a := answers[0]
			return fmt.Sprintf("%s %s %s", a["count"].Value, a["ever"].Value, a["last"].Value)
		}
		want := fmt.Sprintf("%d %[1]d %d.5", n+1, n)
		check := func() {
			if got := ask(with); got != want {
				t.Fatalf("event %d: got %s, want %s", n, got, want)
			}
		}
		check()
		written := make(chan error, 1)
		go func() {
			_, err := s.producer.write([]generate.Event{{Topic: "transactions", Key: []byte("u1"), Value: event, Timestamp: now}})
			written <- err
		}()
		testkit.Eventually(t, time.Minute, "the event arrives", func() (bool, string) {
			check()
			plain := ask(q)
			return plain == want, plain
		})
		check()
		if err := <-written; err != nil {
			t.Fatal(err)
		}
	}
}
