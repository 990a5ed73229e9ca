package integration_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
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
	t.Parallel()
	proxy := newKillingProxy(t)
	broker := kafkatest.New(t, kafkatest.Options{Config: map[string]string{
		"advertised.listeners": "PLAINTEXT://" + proxy.listener.Addr().String(),
	}})
	proxy.mu.Lock()
	proxy.target = broker.Addr()
	proxy.mu.Unlock()

	const letters, batch = 6, 2
	server := redistest.New(t, redistest.Options{})
	namespace := redisstore.New(server.Client(t), "weir", shards)
	if err := namespace.Create(ctx); err != nil {
		t.Fatal(err)
	}
	seal, err := namespace.Seal(ctx)
	if err != nil {
		t.Fatal(err)
	}
	restOf := map[int]bool{} // numbers of events left to the second replay
	kills := 0
	for _, after := range []bool{false, true} {
		for n := 1; ; n++ {
			events, dead := kafkatest.CreateTopic(t, broker, 2), kafkatest.CreateTopic(t, broker, 2)
			setAside(t, broker, seal, events, dead, letters)
			apply(t, namespace, events)
			args := []string{"deadletters", "replay", "--kafka.brokers", broker.Addr(), "--redis.addresses", server.Addr(),
				"--kafka.dead_letter_topic", dead, "--batch", strconv.Itoa(batch)}
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

// apply makes a namespace one that has applied the partitions of a topic.
func apply(t *testing.T, namespace *redisstore.Store, topic string) {
	t.Helper()
	plan := &state.Plan{Version: "v1", Retained: map[string]state.Retention{"serie column": {}}}
	if _, err := namespace.Register(ctx, state.Registration{Plan: plan}); err != nil {
		t.Fatal(err)
	}
	for id := range int32(2) {
		at := state.Partition{Topic: topic, ID: id}.WithPlan(plan.Version)
		if _, err := namespace.Place(ctx, testkit.FirstPlacement(at, shards, 0)); err != nil {
			t.Fatal(err)
		}
	}
}

// setAside writes dead letters of events that are not in the topic itself.
func setAside(t *testing.T, broker *kafkatest.Broker, seal state.Seal, events, dead string, n int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for i := range n {
		r := &kgo.Record{Topic: dead, Partition: int32(i / 3 % 2), Value: fmt.Append(nil, "event ", i)}
		var headers []record.Header
		for key, value := range map[string]string{
			"weir-reason": "wrong_type", "weir-topic": events, "weir-partition": strconv.Itoa(i % 2), "weir-offset": strconv.Itoa(i),
			"weir-timestamp": strconv.FormatInt(time.Now().UnixMilli(), 10), "weir-namespace": "weir",
		} {
			headers = append(headers, record.Header{Key: key, Value: []byte(value)})
		}
		for _, h := range append(headers, record.SealOf(seal, dead, nil, r.Value, headers, len(headers))) {
			r.Headers = append(r.Headers, kgo.RecordHeader(h))
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
