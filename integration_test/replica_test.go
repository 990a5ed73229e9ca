package integration_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A replica answers questions and reports how old its state may be. A question that waits for an
// event gets it although the replica lacks it.
func TestReadFromReplica(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, master.Addr())
	replica := redistest.NewReplica(t, link.Addr())
	s := newScene(t, master.Client(t), "--redis.addresses", master.Addr(),
		"--redis.read_from", "replica", "--redis.replicas", replica.Addr(), "--redis.max_staleness", "1m")
	definitions, err := filepath.Abs("testdata/pending.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := s.start("processor,api", "--features", definitions, "--api.timeout", "1m")
	w.awaitReady()
	now, written := time.Now(), 0
	// write writes an event of u1 and asks for the count, waiting for that event.
	write := func() {
		t.Helper()
		event := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u1","amount":1.50}`, written, now.UnixMilli())
		records, err := s.producer.write([]generate.Event{{Topic: "transactions", Key: []byte("u1"), Value: event, Timestamp: now.UnixMilli()}})
		if err != nil {
			t.Fatal(err)
		}
		written++
		n, answer := count(t, w, question{At: now.UnixMilli(), WaitFor: waitFor(records[0])})
		if n != int64(written) || !answer.Waited.Applied || answer.ReadFrom == "replica" {
			t.Fatalf("a question that waits for event %d got %d, %+v; want the master's answer", written, n, answer)
		}
	}
	fromReplica := func(what string, want func(n int64, staleness time.Duration) bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, what, func() (bool, string) {
			n, answer := count(t, w, question{At: now.UnixMilli()})
			return answer.ReadFrom == "replica" && want(n, time.Duration(answer.Staleness)*time.Millisecond), fmt.Sprintf("%d events, %+v", n, answer)
		})
	}
	write()
	fromReplica("the replica answers", func(n int64, staleness time.Duration) bool { return n == 1 && staleness < time.Second })
	link.Cut()
	write()
	cut := time.Now()
	fromReplica("the replica grows stale", func(n int64, staleness time.Duration) bool {
		if n != 1 {
			t.Fatalf("the replica has %d events although its link is cut, want 1", n)
		}
		return staleness > 2*time.Second && time.Since(cut) > time.Second
	})
	link.Heal()
	fromReplica("the replica has caught up", func(n int64, staleness time.Duration) bool { return n == 2 && staleness < time.Second })
	replica.Kill()
	if n, answer := count(t, w, question{At: now.UnixMilli()}); n != 2 || answer.ReadFrom == "replica" {
		t.Errorf("with the replica dead: got %d, %+v; want the master's answer, 2", n, answer)
	}
	write()
}

// count asks for the number of events of u1.
func count(t *testing.T, w *weir, q question) (n int64, reply *blackbox.Reply) {
	t.Helper()
	q.Features = []string{"count"}
	reply = queryUser(t, w, q)
	if err := json.Unmarshal(reply.Results[0].Features["count"].Value, &n); err != nil {
		t.Fatal(err)
	}
	return n, reply
}
