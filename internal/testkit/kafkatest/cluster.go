package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Cluster is a cluster of three brokers, numbered from 1. The first is also the controller, so a
// test may stop, kill and isolate the others.
type Cluster struct {
	t     testing.TB
	nodes []*Broker
	link  *testkit.FaultyProxy // from the other nodes to the controller
}

const clusterNodes = 3

// NewCluster starts a cluster that only this test uses. Its topics of offsets and transactions are
// on all three brokers and led by the first, so groups work while the others are down.
func NewCluster(t testing.TB) *Cluster {
	t.Helper()
	from := server.MustChoose(t, "Kafka cluster", server.FromDocker(), server.FromMachine(lackJava))
	controller, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	voter := fmt.Sprintf("127.0.0.1:%d", controller)
	c := &Cluster{t: t, link: testkit.Proxy(t, voter)}
	for id := 1; id <= clusterNodes; id++ {
		port, err := server.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		n := node{id: id, cluster: clusterID, port: port, voter: c.link.Addr(), host: true}
		if id == 1 {
			n.controller, n.voter, n.advertised = controller, voter, c.link.Addr()
		}
		b := &Broker{t: t, from: from, dir: t.TempDir(), node: n, opts: Options{Config: clusterConfig}}
		b.addrs = []string{fmt.Sprintf("127.0.0.1:%d", port)}
		c.nodes = append(c.nodes, b)
	}
	c.launch()
	server.Announce(t, false, "Kafka cluster from %s at %s", c.nodes[0].origin, strings.Join(c.Addrs(), ","))
	return c
}

var clusterConfig = map[string]string{
	"offsets.topic.num.partitions":         "1",
	"transaction.state.log.num.partitions": "1",
}

// launch starts all nodes at once.
func (c *Cluster) launch() {
	c.t.Helper()
	errs := make([]error, len(c.nodes))
	var starts sync.WaitGroup
	for i, b := range c.nodes {
		starts.Go(func() { errs[i] = b.launch() })
	}
	starts.Wait()
	for i, b := range c.nodes {
		if b.runner != nil {
			c.t.Cleanup(func() { b.runner.Remove() })
		}
		if errs[i] != nil {
			c.t.Fatal(errs[i])
		}
	}
	for _, b := range c.nodes {
		if err := b.waitReady(); err != nil {
			c.t.Fatal(err)
		}
	}
	// If a client triggered their creation, any broker might lead them.
	for _, topic := range []string{"__consumer_offsets", "__transaction_state"} {
		c.MakeTopic(c.t, topic, map[string]string{"cleanup.policy": "compact"}, 1, 2, 3)
	}
}

// Addrs returns the bootstrap addresses, those of all nodes.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, b := range c.nodes {
		addrs = append(addrs, b.Addr())
	}
	return addrs
}

// Client returns a client with connections of its own.
func (c *Cluster) Client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(c.Addrs()...), Transport: &kafka.Transport{DialTimeout: patience}, Timeout: patience}
}

// Node returns a broker by its number.
func (c *Cluster) Node(id int) *Broker { return c.nodes[id-1] }

// Split isolates all nodes except the first from the controller, which fences them and makes the first node the leader.
// The isolated nodes do not notice, and continue as leaders.
func (c *Cluster) Split() { c.link.Cut() }

// Unite undoes Split.
func (c *Cluster) Unite() { c.link.Heal() }

// CreateTopic creates a topic for this test, with one partition on these nodes, and returns when
// the first of them leads it. The topic is deleted when the test ends.
func (c *Cluster) CreateTopic(t testing.TB, replicas ...int) (topic string) {
	t.Helper()
	topic = testkit.Namespace(t)
	c.MakeTopic(t, topic, nil, replicas...)
	t.Cleanup(func() {
		client := c.Client()
		defer closeIdle(client)
		_, _ = client.DeleteTopics(context.Background(), &kafka.DeleteTopicsRequest{Topics: []string{topic}}) // best effort
	})
	return topic
}

// MakeTopic is CreateTopic with a given name and settings; it does not delete the topic.
func (c *Cluster) MakeTopic(t testing.TB, topic string, config map[string]string, replicas ...int) {
	t.Helper()
	// kafka-go waits until its metadata shows the topic, and never sees internal ones there.
	client, err := kgo.NewClient(kgo.SeedBrokers(c.nodes[0].Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	request := createTopicRequest(topic, config, replicas)
	testkit.Eventually(t, server.StartTimeout, "topic "+topic, func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := client.SeedBrokers()[0].RetriableRequest(ctx, request)
		if err == nil {
			err = kerr.ErrorForCode(reply.(*kmsg.CreateTopicsResponse).Topics[0].ErrorCode)
		}
		return err == nil || errors.Is(err, kerr.TopicAlreadyExists), fmt.Sprint(err)
	})
	c.AwaitLeader(t, topic, replicas[0], replicas...)
}

// createTopicRequest asks for a topic of one partition on these nodes.
func createTopicRequest(topic string, config map[string]string, replicas []int) *kmsg.CreateTopicsRequest {
	created := kmsg.NewCreateTopicsRequestTopic()
	created.Topic, created.NumPartitions, created.ReplicationFactor = topic, -1, -1
	partition := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
	for _, id := range replicas {
		partition.Replicas = append(partition.Replicas, int32(id))
	}
	created.ReplicaAssignment = append(created.ReplicaAssignment, partition)
	for name, value := range config {
		created.Configs = append(created.Configs, kmsg.CreateTopicsRequestTopicConfig{Name: name, Value: &value})
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = append(request.Topics, created), 10_000
	return request
}

// DeleteTopic deletes a topic and waits until it is gone.
func (c *Cluster) DeleteTopic(t testing.TB, topic string) {
	t.Helper()
	client := c.Client()
	defer closeIdle(client)
	testkit.Eventually(t, time.Minute, "topic "+topic+" is gone", func() (bool, string) {
		reply, err := client.DeleteTopics(t.Context(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
		if err == nil {
			err = reply.Errors[topic]
		}
		return errors.Is(err, kafka.UnknownTopicOrPartition), fmt.Sprint(err)
	})
}

// AwaitLeader waits until a node leads partition 0 of a topic with these replicas in sync,
// according to the first node, which is never isolated.
func (c *Cluster) AwaitLeader(t testing.TB, topic string, leader int, inSync ...int) {
	t.Helper()
	client := c.nodes[0].Client()
	defer closeIdle(client)
	testkit.Eventually(t, time.Minute, fmt.Sprintf("broker %d leads %s with %v in sync", leader, topic, inSync), func() (bool, string) {
		found, isr, err := leaderOf(client, topic)
		if err != nil {
			return false, err.Error()
		}
		return found == leader && slices.Equal(isr, slices.Sorted(slices.Values(inSync))), fmt.Sprintf("%d leads, %v in sync", found, isr)
	})
}

// leaderOf returns the node that leads partition 0 of a topic, 0 for none, and the replicas in
// sync.
func leaderOf(client *kafka.Client, topic string) (leader int, inSync []int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	reply, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return 0, nil, err
	}
	if len(reply.Topics) != 1 || len(reply.Topics[0].Partitions) != 1 {
		return 0, nil, fmt.Errorf("%+v", reply.Topics)
	}
	p := reply.Topics[0].Partitions[0]
	for _, b := range p.Isr {
		inSync = append(inSync, b.ID)
	}
	slices.Sort(inSync)
	return p.Leader.ID, inSync, nil
}

// ElectUnclean makes the controller elect a leader of partition 0 among the live replicas, even one
// that lacks records. It first waits until the controller knows that the killed leader is gone:
// until then it holds no election.
func (c *Cluster) ElectUnclean(t testing.TB, topic string) {
	t.Helper()
	asking := c.nodes[0].Client()
	defer closeIdle(asking)
	testkit.Eventually(t, time.Minute, "nobody leads "+topic, func() (bool, string) {
		leader, _, err := leaderOf(asking, topic)
		return err == nil && leader == 0, fmt.Sprint(leader, " leads, ", err)
	})
	client, err := kgo.NewClient(kgo.SeedBrokers(c.nodes[0].Addr()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	testkit.Eventually(t, time.Minute, "an unclean election", func() (bool, string) {
		const unclean = 1
		request := kmsg.NewPtrElectLeadersRequest()
		request.ElectionType = unclean
		request.Topics = []kmsg.ElectLeadersRequestTopic{{Topic: topic, Partitions: []int32{0}}}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		reply, err := request.RequestWith(ctx, client)
		if err == nil {
			err = kerr.ErrorForCode(reply.ErrorCode)
		}
		if err != nil || len(reply.Topics) != 1 {
			return false, fmt.Sprint(err)
		}
		code := reply.Topics[0].Partitions[0].ErrorCode
		return code == 0 || code == kerr.ElectionNotNeeded.Code, fmt.Sprint(kerr.ErrorForCode(code))
	})
}
