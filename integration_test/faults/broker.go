package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

const deadLetters = "dead-letters"

// broker is the broker of all rounds, behind a proxy; each round has topics of its own.
type broker struct {
	*kafkatest.Broker
	kit    *kit
	link   *testkit.FaultyProxy
	client *kafka.Client

	topics map[string]int // of the round, with their partitions
	suffix string
}

// newBroker starts a broker that all but its own tools reach through a proxy.
func newBroker(k *kit) *broker {
	b := &broker{kit: k}
	b.link = testkit.Proxy(k, "127.0.0.1:1") // until the broker's address is known
	b.Broker = kafkatest.NewBehind(k, b.link, kafkatest.Options{Config: map[string]string{
		// What hangs is to be found out within a round.
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}})
	b.client = b.Client()
	return b
}

// settings are those by which processes reach the broker.
func (b *broker) settings() []string { return []string{"--kafka.brokers", b.link.Addr()} }

// createTopics makes the topics of a round. Its events lie in the past, and must not fall to
// the retention.
func (b *broker) createTopics(suffix string, partitions int) {
	b.suffix = suffix
	b.topics = map[string]int{payments + suffix: partitions, logins + suffix: 1, deadLetters + suffix: 1}
	for topic, n := range b.topics {
		b.createTopic(topic, n)
	}
}

func (b *broker) createTopic(topic string, partitions int) {
	wait(b.kit, time.Minute, "topic "+topic, func() (bool, string) {
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

// deleteTopics deletes the round's topics: the broker is to start fast after many rounds.
func (b *broker) deleteTopics() {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	request := &kafka.DeleteTopicsRequest{}
	for topic := range b.topics {
		request.Topics = append(request.Topics, topic)
	}
	_, _ = b.client.DeleteTopics(ctx, request) // what stays is no harm
}

// deleteTopic deletes a topic and waits until it is gone.
func (b *broker) deleteTopic(topic string) {
	wait(b.kit, time.Minute, "topic "+topic+" is gone", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := b.client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = reply.Errors[topic]
		}
		return errors.Is(err, kafka.UnknownTopicOrPartition), fmt.Sprint(err)
	})
}

// partitions are those of the events.
func (b *broker) partitions() []state.Partition {
	return append(partitionsOf(payments+b.suffix, b.topics[payments+b.suffix]), partitionsOf(logins+b.suffix, 1)...)
}

// ends are the ends of the partitions of the events.
func (b *broker) ends(ctx context.Context) (map[state.Partition]int64, error) {
	return b.offsets(ctx, kafka.ReadUncommitted)
}

// open says where transactions are open in the logs.
func (b *broker) open() string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	ends, err := b.offsets(ctx, kafka.ReadUncommitted)
	if err != nil {
		return err.Error()
	}
	stable, err := b.offsets(ctx, kafka.ReadCommitted)
	if err != nil {
		return err.Error()
	}
	var text []string
	for p, end := range ends {
		if stable[p] < end {
			text = append(text, fmt.Sprintf("%s/%d from %d", p.Topic, p.ID, stable[p]))
		}
	}
	return fmt.Sprint(text)
}

// offsets are the ends of the partitions of the events, as an isolation has them.
func (b *broker) offsets(ctx context.Context, isolation kafka.IsolationLevel) (map[state.Partition]int64, error) {
	asked := map[string][]kafka.OffsetRequest{}
	for _, p := range b.partitions() {
		asked[p.Topic] = append(asked[p.Topic], kafka.LastOffsetOf(int(p.ID)))
	}
	reply, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked, IsolationLevel: isolation})
	if err != nil {
		return nil, err
	}
	found := map[state.Partition]int64{}
	for topic, list := range reply.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, p.Error
			}
			found[state.Partition{Topic: topic, ID: int32(p.Partition)}] = p.LastOffset
		}
	}
	return found, nil
}
