package kafkatest

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit"
)

func produce(t *testing.T, client *kafka.Client, topic, value string) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "produce to "+topic, func() (bool, string) {
		reply, err := client.Produce(context.Background(), &kafka.ProduceRequest{
			Topic: topic, RequiredAcks: kafka.RequireAll,
			Records: kafka.NewRecordReader(kafka.Record{Value: kafka.NewBytes([]byte(value))}),
		})
		if err == nil {
			err = reply.Error
		}
		return err == nil, fmt.Sprint(err)
	})
}

// end returns the offset after the last record of partition 0.
func end(t *testing.T, client *kafka.Client, topic string) (offset int64) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "end offset of "+topic, func() (bool, string) {
		reply, err := client.ListOffsets(context.Background(), &kafka.ListOffsetsRequest{
			Topics: map[string][]kafka.OffsetRequest{topic: {kafka.LastOffsetOf(0)}},
		})
		if err != nil {
			return false, err.Error()
		}
		p := reply.Topics[topic][0]
		offset = p.LastOffset
		return p.Error == nil, fmt.Sprint(p.Error)
	})
	return offset
}

func TestSharedKafkaTakesRecords(t *testing.T) {
	b := Shared(t)
	if Shared(t) != b {
		t.Error("a second call returned another broker")
	}
	topic := CreateTopic(t, b, 3)
	client := b.Client()
	defer closeIdle(client)
	produce(t, client, topic, "one")
	if got := end(t, client, topic); got != 1 {
		t.Errorf("end offset = %d, want 1", got)
	}
}

func TestKafkaKeepsRecordsOverKill(t *testing.T) {
	b := New(t, Options{})
	topic := CreateTopic(t, b, 1)
	client := b.Client()
	defer closeIdle(client)
	produce(t, client, topic, "one")
	b.Kill()
	if c, err := net.Dial("tcp", b.Addr()); err == nil {
		t.Errorf("the killed broker accepts a connection: %v", c.Close())
	}
	b.Start()
	produce(t, client, topic, "two")
	if got := end(t, client, topic); got != 2 {
		t.Errorf("end offset = %d, want 2", got)
	}
}

func TestReplacedKafkaIsAnotherCluster(t *testing.T) {
	b := New(t, Options{})
	CreateTopic(t, b, 1)
	addr := b.Addr()
	look := func() *kafka.MetadataResponse {
		t.Helper()
		client := b.Client()
		defer closeIdle(client)
		reply, err := client.Metadata(t.Context(), &kafka.MetadataRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	before := look()
	b.Replace()
	if after := look(); b.Addr() != addr || after.ClusterID == before.ClusterID || len(after.Topics) != 0 {
		t.Errorf("address %s, before %s; cluster %s, before %s; topics %v; want an empty new cluster at the same address", b.Addr(), addr, after.ClusterID, before.ClusterID, after.Topics)
	}
}

func TestKfakeHasItsTopics(t *testing.T) {
	c := Embedded(t, map[string]int{"a": 1, "b": 4})
	client := &kafka.Client{Addr: kafka.TCP(c.ListenAddrs()...)}
	reply, err := client.Metadata(context.Background(), &kafka.MetadataRequest{})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, topic := range reply.Topics {
		got[topic.Name] = len(topic.Partitions)
	}
	if fmt.Sprint(got) != "map[a:1 b:4]" {
		t.Errorf("topics = %v, want a with 1 and b with 4 partitions", got)
	}
}
