package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/kinds"
	"github.com/weir-stream/weir/internal/testkit"
)

const deadLetters = "dead-letters"

// broker is the broker of all rounds, behind a proxy; each round has topics of its own.
type broker struct {
	*testkit.Broker
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
	b.Broker = testkit.NewKafka(k, testkit.KafkaOptions{Config: map[string]string{
		"advertised.listeners": "PLAINTEXT://" + b.link.Addr(),
		// What hangs is to be found out within a round.
		"transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
	}})
	b.link.Retarget(b.Addr())
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

// partitions are those of the events.
func (b *broker) partitions() []kinds.Partition {
	return append(partitionsOf(payments+b.suffix, b.topics[payments+b.suffix]), partitionsOf(logins+b.suffix, 1)...)
}

// ends are the ends of the partitions of the events.
func (b *broker) ends(ctx context.Context) (map[kinds.Partition]int64, error) {
	asked := map[string][]kafka.OffsetRequest{}
	for _, p := range b.partitions() {
		asked[p.Topic] = append(asked[p.Topic], kafka.LastOffsetOf(int(p.ID)))
	}
	reply, err := b.client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked})
	if err != nil {
		return nil, err
	}
	found := map[kinds.Partition]int64{}
	for topic, list := range reply.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, p.Error
			}
			found[kinds.Partition{Topic: topic, ID: int32(p.Partition)}] = p.LastOffset
		}
	}
	return found, nil
}
