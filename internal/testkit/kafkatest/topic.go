package kafkatest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// CreateTopic creates a topic with a fresh name, and returns when every partition has a leader. The
// topic is deleted when the test ends.
func CreateTopic(t testing.TB, b *Broker, partitions int) string {
	t.Helper()
	return createTopic(t, b.Client(), partitions)
}

func createTopic(t testing.TB, client *kafka.Client, partitions int) string {
	t.Helper()
	topic := testkit.Namespace(t)
	makeTopic(t, client, topic, partitions)
	return topic
}

// MakeTopic is CreateTopic with a given name.
func MakeTopic(t testing.TB, b *Broker, topic string, partitions int) {
	t.Helper()
	makeTopic(t, b.Client(), topic, partitions)
}

func makeTopic(t testing.TB, client *kafka.Client, topic string, partitions int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), server.StartTimeout)
	defer cancel()
	reply, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: partitions, ReplicationFactor: 1,
		// Tests write records of any time: a broker that happens to look for old ones meanwhile would remove them.
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}},
	}}})
	if err == nil {
		err = reply.Errors[topic]
	}
	if err != nil {
		t.Fatalf("create topic %s: %v", topic, err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		// Best effort: the test may have killed the broker.
		_, _ = client.DeleteTopics(ctx, &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		closeIdle(client)
	})
	testkit.Eventually(t, time.Minute, "leaders of topic "+topic, func() (bool, string) {
		reply, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
		if err != nil {
			return false, err.Error()
		}
		led := 0
		for _, p := range reply.Topics[0].Partitions {
			if p.Error == nil && p.Leader.Port != 0 {
				led++
			}
		}
		return led == partitions, fmt.Sprintf("%d of %d partitions have one", led, partitions)
	})
}
