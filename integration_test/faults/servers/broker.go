package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

// Broker is a Kafka broker behind a proxy. All rounds share it; each round has topics of its own.
type Broker struct {
	*kafkatest.Broker
	Link   *testkit.FaultyProxy // the proxy between the broker and everything but its own tools
	kit    *Kit
	client *kafka.Client
}

// NewBroker starts a broker, which stops when the kit is closed.
func NewBroker(k *Kit) *Broker {
	b := &Broker{kit: k}
	b.Link = testkit.Proxy(k, "127.0.0.1:1") // replaced once the broker's address is known
	b.Broker = kafkatest.NewBehind(k, b.Link, kafkatest.Options{Config: map[string]string{
		// A hanging transaction must be aborted within a round.
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}})
	b.client = b.Client()
	return b
}

// Settings returns the flags with which processes of Weir reach the broker.
func (b *Broker) Settings() []string { return []string{"--kafka.brokers", b.Link.Addr()} }

// CreateTopic creates a topic without retention: records may be older than the default limit.
func (b *Broker) CreateTopic(topic string, partitions int) {
	testkit.Eventually(b.kit, time.Minute, "topic "+topic, func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := b.client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
			Topic: topic, NumPartitions: partitions, ReplicationFactor: 1,
			ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}},
		}}})
		if err == nil {
			err = reply.Errors[topic]
		}
		return err == nil, fmt.Sprint(err)
	})
}

// GrowTopic increases the partitions of a topic to a number.
func (b *Broker) GrowTopic(topic string, partitions int) {
	testkit.Eventually(b.kit, time.Minute, "more partitions of topic "+topic, func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := b.client.CreatePartitions(ctx, &kafka.CreatePartitionsRequest{
			Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: int32(partitions)}},
		})
		if err == nil {
			err = reply.Errors[topic]
		}
		if err == nil || errors.Is(err, kafka.InvalidPartitionNumber) { // an earlier reply was lost
			return true, ""
		}
		return false, fmt.Sprint(err)
	})
}

// DeleteTopics deletes unused topics, so that the broker starts fast after many rounds.
func (b *Broker) DeleteTopics(topics ...string) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, _ = b.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: topics}) // leftover topics do no harm
}

// DeleteTopic deletes a topic and waits until it is gone.
func (b *Broker) DeleteTopic(topic string) {
	testkit.Eventually(b.kit, time.Minute, "topic "+topic+" is gone", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := b.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = reply.Errors[topic]
		}
		return errors.Is(err, kafka.UnknownTopicOrPartition), fmt.Sprint(err)
	})
}

// Ends returns the end offsets of partitions.
func (b *Broker) Ends(ctx context.Context, partitions []state.Partition) (map[state.Partition]int64, error) {
	return kafkatest.Ends(ctx, b.client, partitions, kafka.ReadUncommitted)
}

// OpenTransactions describes the open transactions in the logs of partitions, "" for none.
func (b *Broker) OpenTransactions(partitions []state.Partition) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ends, err := kafkatest.Ends(ctx, b.client, partitions, kafka.ReadUncommitted)
	if err != nil {
		return err.Error()
	}
	stable, err := kafkatest.Ends(ctx, b.client, partitions, kafka.ReadCommitted)
	if err != nil {
		return err.Error()
	}
	var text []string
	for p, end := range ends {
		if stable[p] < end {
			text = append(text, fmt.Sprintf("%s/%d from %d", p.Topic, p.ID, stable[p]))
		}
	}
	return strings.Join(text, ", ")
}
