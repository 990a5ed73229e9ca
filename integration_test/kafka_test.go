package integration_test

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

var ctx = context.Background()

const deadLetters = "weir.dead-letters"

// topics are the topics that the definitions of these tests read and write, with their partitions.
var topics = map[string]int{
	generate.Transactions: 4, "transactions.enriched": 4, generate.Logins: 2, deadLetters: 1, generate.Merchants: 1, generate.Lists: 1,
}

// createTopics creates the topics without retention: the tests' events are in the past.
func createTopics(t testing.TB, broker *kafkatest.Broker) {
	t.Helper()
	request := &kafka.CreateTopicsRequest{}
	for topic, partitions := range topics {
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: topic, NumPartitions: partitions, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}},
		})
	}
	client := broker.Client()
	made, err := client.CreateTopics(ctx, request)
	if err != nil {
		t.Fatal(err)
	}
	for topic, err := range made.Errors {
		if err != nil {
			t.Fatalf("create topic %s: %v", topic, err)
		}
	}
}

// partitions returns the partitions of the events' topics.
func partitions() (all []state.Partition) {
	for _, topic := range []string{generate.Logins, generate.Transactions} {
		for id := range topics[topic] {
			all = append(all, state.Partition{Topic: topic, ID: int32(id)})
		}
	}
	return all
}

// ends returns the end offsets of the partitions.
func ends(client *kafka.Client) (map[state.Partition]int64, error) {
	return kafkatest.Ends(ctx, client, partitions(), kafka.ReadUncommitted)
}

// committed returns the group's committed offsets.
func committed(client *kafka.Client, group string) (map[state.Partition]int64, error) {
	asked := map[string][]int{}
	for _, p := range partitions() {
		asked[p.Topic] = append(asked[p.Topic], int(p.ID))
	}
	reply, err := client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: group, Topics: asked})
	if err == nil {
		err = reply.Error
	}
	if err != nil {
		return nil, err
	}
	found := map[state.Partition]int64{}
	for topic, list := range reply.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, p.Error
			}
			found[state.Partition{Topic: topic, ID: int32(p.Partition)}] = p.CommittedOffset
		}
	}
	return found, nil
}

// producer writes events, some of them in transactions.
type producer struct {
	plain, transactional *kgo.Client
}

func newProducer(t testing.TB, broker *kafkatest.Broker) *producer {
	t.Helper()
	client := func(opts ...kgo.Opt) *kgo.Client {
		// A container's port accepts connections before its broker does, and closes them.
		c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker.Addrs()...), kgo.AlwaysRetryEOF())...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	return &producer{client(), client(kgo.TransactionalID(testkit.Namespace(t)))}
}

// write writes the events and returns their records, with partitions and offsets.
func (p *producer) write(events []generate.Event) ([]*kgo.Record, error) {
	return send(p.plain, events)
}

// commit writes the events in a transaction.
func (p *producer) commit(events []generate.Event) ([]*kgo.Record, error) {
	return p.transact(events, kgo.TryCommit)
}

// abort writes the events in a transaction that is aborted.
func (p *producer) abort(events []generate.Event) error {
	_, err := p.transact(events, kgo.TryAbort)
	return err
}

func (p *producer) transact(events []generate.Event, end kgo.TransactionEndTry) ([]*kgo.Record, error) {
	if err := p.transactional.BeginTransaction(); err != nil {
		return nil, err
	}
	records, err := send(p.transactional, events)
	if err != nil {
		return nil, err
	}
	return records, p.transactional.EndTransaction(ctx, end)
}

// send writes the events and returns their records in the same order.
func send(client *kgo.Client, events []generate.Event) ([]*kgo.Record, error) {
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		records[i] = &kgo.Record{Topic: e.Topic, Key: e.Key, Value: e.Value, Timestamp: time.UnixMilli(e.Timestamp)}
	}
	return records, client.ProduceSync(ctx, records...).FirstErr()
}

// place identifies a record as topic/partition/offset.
func place(topic string, partition int32, offset int64) string {
	return topic + "/" + strconv.Itoa(int(partition)) + "/" + strconv.FormatInt(offset, 10)
}

// readDead waits until the dead-letter topic has a letter for every place, and returns the last one
// of each.
func readDead(t testing.TB, broker *kafkatest.Broker, places []string) map[string]*kgo.Record {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics(deadLetters))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	patient, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	found := map[string]*kgo.Record{}
	for {
		missing := slices.DeleteFunc(slices.Clone(places), func(p string) bool { return found[p] != nil })
		if len(missing) == 0 {
			return found
		}
		fetches := client.PollFetches(patient)
		if patient.Err() != nil {
			t.Fatalf("%d of %d dead letters are missing, for example of %s; found: %v",
				len(missing), len(places), missing[0], slices.Sorted(maps.Keys(found)))
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if header(r, "weir-skipped") != "" {
				return // it is no letter, but a note of a backfill
			}
			found[header(r, "weir-topic")+"/"+header(r, "weir-partition")+"/"+header(r, "weir-offset")] = r
		})
	}
}

func header(r *kgo.Record, key string) string {
	for _, h := range r.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// checkDeadLetters checks that every poison record has a dead letter, and that no other record has
// one, late ones excepted.
func (s *scene) checkDeadLetters() {
	s.t.Helper()
	for place, letter := range readDead(s.t, s.broker, s.poison) {
		if !slices.Contains(s.poison, place) && header(letter, "weir-reason") != string(record.Late) {
			s.t.Errorf("the good record at %s became a dead letter: %s", place, header(letter, "weir-message"))
		}
	}
}
