package integration_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/client"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Questions are answered by a replica, which says how old its state may be; who
// waits for an event gets it although the replica does not.
func TestReadFromReplica(t *testing.T) {
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
	ask, now, written := client.New(w.url), time.Now(), 0
	// write writes an event of u1 and asks for their number, waiting for it.
	write := func() {
		t.Helper()
		event := fmt.Appendf(nil, `{"event_id":"e%d","timestamp":%d,"user_id":"u1","amount":1.50}`, written, now.UnixMilli())
		records, err := s.producer.write([]generate.Event{{Topic: "transactions", Key: []byte("u1"), Value: event, Timestamp: now.UnixMilli()}})
		if err != nil {
			t.Fatal(err)
		}
		written++
		r := records[0]
		n, answer := count(t, ask, client.Question{At: now, WaitFor: &client.Record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timeout: 20 * time.Second}})
		if n != int64(written) || !answer.Applied || answer.Replica {
			t.Fatalf("who waits for event %d gets %d, %+v", written, n, answer)
		}
	}
	fromReplica := func(what string, want func(n int64, staleness time.Duration) bool) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, what, func() (bool, string) {
			n, answer := count(t, ask, client.Question{At: now})
			return answer.Replica && want(n, answer.Staleness), fmt.Sprintf("%d events, %+v", n, answer)
		})
	}
	write()
	fromReplica("the replica answers", func(n int64, staleness time.Duration) bool { return n == 1 && staleness < time.Second })
	link.Cut()
	write()
	cut := time.Now()
	fromReplica("the replica grows stale", func(n int64, staleness time.Duration) bool {
		if n != 1 {
			t.Fatalf("the replica has %d events, though its link is cut", n)
		}
		return staleness > 2*time.Second && time.Since(cut) > time.Second
	})
	link.Heal()
	fromReplica("the replica has caught up", func(n int64, staleness time.Duration) bool { return n == 2 && staleness < time.Second })
	replica.Kill()
	if n, answer := count(t, ask, client.Question{At: now}); n != 2 || answer.Replica {
		t.Errorf("the master answers for the dead replica with %d, %+v", n, answer)
	}
	write()
}

// count asks for the number of events of u1.
func count(t *testing.T, ask *client.Client, q client.Question) (int64, client.Answer) {
	t.Helper()
	q.Features, q.Entities = []string{"count"}, []client.Entity{{"user_id": "u1"}}
	answer, err := ask.Query(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	n, _ := answer.Results[0].Features["count"].Int()
	return n, *answer
}
