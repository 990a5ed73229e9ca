package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// Broker is a Kafka cluster of one broker, or the given one.
type Broker struct {
	t      testing.TB // nil when shared
	addrs  []string
	secure secureListeners
	runner runner // nil when given
	origin string

	// What the broker was made from, for Replace.
	from source
	dir  string
	node node
	opts KafkaOptions
	data string // folder of the logs; empty where that is not of this machine
}

// KafkaOptions are the settings of a broker of one's own.
type KafkaOptions struct {
	// Config is added to the broker's server.properties, or replaces what the
	// testkit sets there.
	Config map[string]string
	// Dir, where set, is an empty directory for the broker's logs, for a test that
	// damages them. Such a broker runs on this machine.
	Dir string
	// TLS, where set, signs the certificate of two more listeners: that at
	// SecureAddr wants a login as SecureUser, that at MutualAddr a client's
	// certificate of the same authority.
	TLS *Authority
	// Issuer, where set, gives the tokens by which clients may also log in at SecureAddr.
	Issuer *Issuer
	// Loaded has the broker run as Kafka's own start script runs it, for load
	// that lasts; otherwise it is one that starts fast and takes little memory.
	Loaded bool
}

var sharedKafka struct {
	sync.Mutex
	broker *Broker
}

// Kafka returns the broker that all tests of this binary share. It does not
// create topics by itself: use [CreateTopic].
func Kafka(t testing.TB) *Broker {
	t.Helper()
	sharedKafka.Lock()
	defer sharedKafka.Unlock()
	if sharedKafka.broker != nil {
		return sharedKafka.broker
	}
	from := mustChoose(t, "Kafka", lackGiven("WEIR_TEST_KAFKA"), lackDocker(), offer{local, lackLocalKafka})
	b := &Broker{}
	if from == given {
		b.addrs, b.origin = strings.Split(os.Getenv("WEIR_TEST_KAFKA"), ","), "WEIR_TEST_KAFKA"
	} else {
		dir, err := sharedDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.init(from, dir, KafkaOptions{}); err != nil {
			t.Fatal(err)
		}
		atEnd(b.runner.remove)
	}
	if err := b.waitReady(); err != nil {
		t.Fatal(err)
	}
	announce(t, true, "Kafka from %s at %s", b.origin, strings.Join(b.addrs, ","))
	sharedKafka.broker = b
	return b
}

// NewKafka starts a broker of the test's own, to stop, kill and start again.
// It ends with the test.
func NewKafka(t testing.TB, opts KafkaOptions) *Broker {
	t.Helper()
	offers := []offer{lackDocker(), {local, lackLocalKafka}}
	if opts.TLS != nil || opts.Dir != "" {
		offers = offers[1:] // neither its ports nor its files are those of a container
	}
	from := mustChoose(t, "Kafka", offers...)
	b := &Broker{t: t}
	if opts.TLS != nil {
		b.secure = newSecureListeners(t)
		opts.Config = b.secure.properties(opts)
	}
	if err := b.init(from, t.TempDir(), opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.runner.remove() })
	if err := b.waitReady(); err != nil {
		t.Fatal(err)
	}
	announce(t, false, "Kafka from %s at %s", b.origin, b.Addr())
	if opts.TLS != nil {
		b.addSecureUser()
	}
	return b
}

// init takes ports, lays out dir and starts the broker, a cluster of its own.
func (b *Broker) init(from source, dir string, opts KafkaOptions) error {
	var errs [2]error
	n := node{id: 1, cluster: clusterID}
	n.port, errs[0] = freePort(ephemeralPorts)
	n.controller, errs[1] = freePort(ephemeralPorts)
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	n.voter = fmt.Sprintf("127.0.0.1:%d", n.controller)
	b.from, b.dir, b.node, b.opts = from, dir, n, opts
	return b.launch()
}

// launch lays out the broker's folder and starts it.
func (b *Broker) launch() (err error) {
	if b.from == docker {
		b.addrs, b.runner, b.origin, err = dockerKafka(b.node, b.opts)
	} else {
		b.data = cmp.Or(b.opts.Dir, filepath.Join(b.dir, "data"))
		b.addrs, b.runner, b.origin, err = localKafka(b.dir, b.data, b.node, b.opts)
	}
	if err != nil {
		return err
	}
	if err := b.runner.start(); err != nil {
		b.runner.remove() // a container may be left of it
		return fmt.Errorf("start Kafka from %s: %w", b.origin, err)
	}
	return nil
}

// Replace kills the broker and starts another cluster at its address, with another
// ID and nothing in it: as a name does that leads to another site.
func (b *Broker) Replace() {
	b.t.Helper()
	b.Kill()
	b.runner.remove()
	if b.data != "" {
		if err := os.RemoveAll(b.data); err != nil {
			b.t.Fatal(err)
		}
	}
	b.node.cluster = newClusterID()
	if err := b.launch(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.waitReady(); err != nil {
		b.t.Fatal(err)
	}
}

// Addr is the address of the first broker, host:port.
func (b *Broker) Addr() string { return b.addrs[0] }

// Addrs are the addresses to bootstrap from.
func (b *Broker) Addrs() []string { return b.addrs }

// Client returns a client with connections of its own.
func (b *Broker) Client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(b.addrs...), Transport: &kafka.Transport{}, Timeout: 10 * time.Second}
}

// Stop ends the broker as an operator does: with SIGTERM, and waits.
func (b *Broker) Stop() { b.t.Helper(); b.end(syscall.SIGTERM) }

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() { b.t.Helper(); b.end(syscall.SIGKILL) }

// Pause stops the broker in the midst of what it does, until Resume or Kill: its
// connections stand, and nothing comes back.
func (b *Broker) Pause() { b.t.Helper(); b.signal(sigPause) }

// Resume lets the broker go on.
func (b *Broker) Resume() { b.t.Helper(); b.signal(sigResume) }

func (b *Broker) signal(sig syscall.Signal) {
	b.t.Helper()
	if err := b.runner.signal(sig); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Broker) end(sig syscall.Signal) {
	b.t.Helper()
	if err := b.runner.end(sig); err != nil {
		b.t.Fatal(err)
	}
}

// Start starts the broker again after Stop or Kill, at the same address with
// the same data, and returns when it answers.
func (b *Broker) Start() {
	b.t.Helper()
	if err := b.runner.start(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.waitReady(); err != nil {
		b.t.Fatal(err)
	}
}

// waitReady waits until the broker lists itself in its metadata: from then on
// it takes topics and records.
func (b *Broker) waitReady() error {
	client := b.Client()
	client.Timeout = time.Second
	defer closeIdle(client)
	return waitServer("Kafka from "+b.origin, b.runner, func(ctx context.Context) error {
		reply, err := client.Metadata(ctx, &kafka.MetadataRequest{})
		if err == nil && len(reply.Brokers) == 0 {
			err = errors.New("no broker in the metadata")
		}
		return err
	})
}

func closeIdle(c *kafka.Client) { c.Transport.(*kafka.Transport).CloseIdleConnections() }

// waitServer asks until a server answers, and gives up at once when its
// process has ended.
func waitServer(what string, r runner, ask func(context.Context) error) error {
	ctx, cancel := startContext()
	defer cancel()
	ended := false
	last, ok := poll(startTimeout, func() (bool, string) {
		if r != nil {
			select {
			case <-r.gone():
				ended = true
				return true, ""
			default:
			}
		}
		if err := ask(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	})
	switch {
	case ended:
		return fmt.Errorf("%s ended while starting; its log ends:\n%s", what, r.log())
	case !ok && r == nil:
		return fmt.Errorf("%s does not answer: %s", what, last)
	case !ok:
		return fmt.Errorf("%s does not answer: %s; its log ends:\n%s", what, last, r.log())
	}
	return nil
}

// CreateTopic makes a topic with a name of the test's own, which is deleted
// when the test ends, and returns when every partition has a leader.
func CreateTopic(t testing.TB, b *Broker, partitions int) string {
	t.Helper()
	return createTopic(t, b.Client(), partitions)
}

func createTopic(t testing.TB, client *kafka.Client, partitions int) string {
	t.Helper()
	topic := Namespace(t)
	makeTopic(t, client, topic, partitions)
	return topic
}

// MakeTopic is CreateTopic for a topic with a given name.
func MakeTopic(t testing.TB, b *Broker, topic string, partitions int) {
	t.Helper()
	makeTopic(t, b.Client(), topic, partitions)
}

func makeTopic(t testing.TB, client *kafka.Client, topic string, partitions int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	reply, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
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
	Eventually(t, 30*time.Second, "leaders of topic "+topic, func() (bool, string) {
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
