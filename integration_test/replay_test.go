package integration_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// These are the requests of a replay that change something.
const (
	keyProduce        = 0
	keyInitProducerID = 22
	keyAddPartitions  = 24
	keyEndTxn         = 26
)

// If a replay is killed at any request, the next one completes it, and each event is written back once.
func TestReplayUnderKills(t *testing.T) {
	proxy := newKillingProxy(t)
	broker := kafkatest.New(t, kafkatest.Options{Config: map[string]string{
		"advertised.listeners": "PLAINTEXT://" + proxy.listener.Addr().String(),
	}})
	proxy.mu.Lock()
	proxy.target = broker.Addr()
	proxy.mu.Unlock()

	const letters, batch = 6, 2
	restOf := map[int]bool{} // numbers of events left to the second replay
	kills := 0
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			events, dead := kafkatest.CreateTopic(t, broker, 2), kafkatest.CreateTopic(t, broker, 2)
			setAside(t, broker, events, dead, letters)
			args := []string{"deadletters", "replay", "--kafka.brokers", broker.Addr(), "--kafka.dead_letter_topic", dead,
				"--batch", strconv.Itoa(batch)}
			start := make(chan *testkit.Program, 1)
			proxy.arm(n, after, func() { (<-start).Kill() }, keyProduce, keyInitProducerID, keyAddPartitions, keyEndTxn)
			first := testkit.Start(t, binary, args...)
			start <- first
			<-first.Done()
			killed := proxy.disarm()

			out, code := runWeir(t, args...)
			if code != 0 {
				t.Fatalf("kill %d, after %v: exit code %d: %s", n, after, code, out)
			}
			var rest int
			if _, err := fmt.Sscanf(out, "replayed %d event", &rest); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			restOf[rest] = true
			values := map[string]int{}
			for _, r := range committedRecords(t, broker, events, dead) {
				if r.Topic == events {
					values[string(r.Value)]++
				} else if receipt := header(r, "weir-receipt"); receipt != "" {
					values[receipt]++
				}
			}
			for i := range letters {
				receipt := place(events, int32(i%2), int64(i))
				if values[fmt.Sprint("event ", i)] != 1 || values[receipt] != 1 {
					t.Errorf("kill %d, after %v: event %d occurs %d times with %d receipts, want once with 1", n, after, i,
						values[fmt.Sprint("event ", i)], values[receipt])
				}
			}
			if !killed {
				if first.ExitCode() != 0 || rest != 0 {
					t.Errorf("a replay that was not killed has exit code %d and leaves %d events, want 0 and none\n%s", first.ExitCode(), rest, first.Log())
				}
				break
			}
			kills++
		}
	}
	// A replay sends one request to begin, and at least two for each transaction.
	if least := 2 * (1 + 2*letters/batch); kills < least {
		t.Errorf("%d kills, want at least %d", kills, least)
	}
	for rest := 0; rest <= letters; rest += batch {
		if !restOf[rest] {
			t.Errorf("no kill left %d events to the next replay; numbers left: %v", rest, restOf)
		}
	}
}

// setAside writes dead letters of events that are not in the topic itself.
func setAside(t *testing.T, broker *kafkatest.Broker, events, dead string, n int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range n {
		r := &kgo.Record{Topic: dead, Partition: int32(i / 3 % 2), Value: fmt.Append(nil, "event ", i)}
		for key, value := range map[string]string{
			"weir-reason": "wrong_type", "weir-topic": events, "weir-partition": strconv.Itoa(i % 2), "weir-offset": strconv.Itoa(i),
			"weir-timestamp": strconv.FormatInt(time.Now().UnixMilli(), 10),
		} {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: key, Value: []byte(value)})
		}
		if err := client.ProduceSync(ctx, r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

// committedRecords returns the committed records of topics with two partitions.
func committedRecords(t *testing.T, broker *kafkatest.Broker, topics ...string) (records []*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumeTopics(topics...), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ends := map[string]bool{} // partitions whose marker record is read
	for _, topic := range topics {
		for partition := range int32(2) {
			end := &kgo.Record{Topic: topic, Partition: partition}
			if err := client.ProduceSync(ctx, end).FirstErr(); err != nil {
				t.Fatal(err)
			}
			ends[place(topic, partition, end.Offset)] = true
		}
	}
	for len(ends) > 0 {
		fetches := client.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if at := place(r.Topic, r.Partition, r.Offset); ends[at] {
				delete(ends, at)
			} else {
				records = append(records, r)
			}
		})
	}
	return records
}

// Once definitions accept events that they rejected before, a replay applies them; events that are
// still rejected are set aside again.
func TestReplayedEventsCount(t *testing.T) {
	definitions := func(name, amount string) string {
		path := filepath.Join(t.TempDir(), name)
		text := strings.ReplaceAll(`
streams:
  pay:
    topic: payments
    format: json
    timestamp: {path: at, unit: ms}
    fields:
      user: string
      amount: TYPE
features:
  user_pays: COUNT(lifetime, pay, user)
`, "TYPE", amount)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	server, broker := redistest.New(t, redistest.Options{}), kafkatest.New(t, kafkatest.Options{})
	client := broker.Client()
	for _, topic := range []string{"payments", deadLetters} {
		made, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
			Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: 2, ReplicationFactor: 1}},
		})
		if err != nil || made.Errors[topic] != nil {
			t.Fatal(err, made.Errors)
		}
	}
	settings := []string{"--kafka.brokers", broker.Addr(), "--redis.addresses", server.Addr(), "--kafka.session_timeout", "2s",
		"--kafka.heartbeat_interval", "300ms"}
	producer, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	write := func(amount string) {
		t.Helper()
		now := time.Now().UnixMilli()
		value := fmt.Appendf(nil, `{"user": "u1", "amount": %s, "at": %d}`, amount, now)
		if err := producer.ProduceSync(ctx, &kgo.Record{Topic: "payments", Key: []byte("u1"), Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	await := func(w *weir, want string, dead int) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the count", func() (bool, string) {
			_, body := w.get("/v1/features/user_pays?user=u1")
			n := int(w.metric("weir_dead_letters_total", ""))
			return n == dead && strings.Contains(body, `"value":`+want+","), fmt.Sprint(body, n)
		})
	}
	replay := func(want string, more ...string) {
		t.Helper()
		out, code := runWeir(t, append([]string{"deadletters", "replay", "--kafka.brokers", broker.Addr()}, more...)...)
		if code != 0 || !strings.HasPrefix(out, want+"\n") {
			t.Errorf("exit code %d, %s; want %s", code, out, want)
		}
	}

	w := startWeir(t, append(settings, "--features", definitions("old.yaml", "int"))...)
	for _, amount := range []string{"1", `"2"`, "3", `"4"`, "{}"} {
		write(amount)
	}
	await(w, "2", 3)
	w.Stop()
	w = startWeir(t, append(settings, "--features", definitions("new.yaml", "string"))...)
	replay("would replay 3 events: 3 wrong_type", "--dry-run")
	replay("replayed 3 events: 3 wrong_type", "--reason", "wrong_type")
	await(w, "4", 1)
	out, code := runWeir(t, "deadletters", "list", "--kafka.brokers", broker.Addr())
	if code != 0 || !strings.Contains(out, "4 dead letters: 4 wrong_type, 3 of them replayed") {
		t.Errorf("deadletters list: exit code %d, output\n%s", code, out)
	}
	out, _ = runWeir(t, "deadletters", "list", "--json", "--kafka.brokers", broker.Addr())
	if !strings.Contains(out, `"replays": 1`) {
		t.Errorf("a letter that was set aside again does not have 1 replay:\n%s", out)
	}
	// The value is still no string, and its dead letter differs from the replayed one.
	replay("replayed 1 event: 1 wrong_type")
	await(w, "4", 2)
	out, _ = runWeir(t, "deadletters", "list", "--json", "--kafka.brokers", broker.Addr())
	if !strings.Contains(out, `"replays": 2`) {
		t.Errorf("a letter that was set aside a third time does not have 2 replays:\n%s", out)
	}
}
