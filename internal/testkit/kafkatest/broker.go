// Package kafkatest starts Kafka brokers for tests. See package testkit for where they come from.
package kafkatest

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

	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Broker is a Kafka cluster of one broker, or the given one.
type Broker struct {
	t      testing.TB // nil when shared
	addrs  []string
	secure secureListeners
	runner server.Runner // nil if given
	origin string

	// These are what Replace starts another broker from.
	from server.Origin
	dir  string
	node node
	opts Options
	data string // folder of the logs; empty if not on this machine
}

// Options are the settings of a broker that one test owns.
type Options struct {
	// Config adds to the broker's server.properties, or replaces settings of the testkit.
	Config map[string]string
	// Dir, if set, is an empty directory for the broker's logs, for a test that damages them. Such
	// a broker runs on this machine.
	Dir string
	// TLS, if set, signs the certificate of two more listeners: the one at SecureAddr requires a
	// login as SecureUser, the one at MutualAddr a client certificate of the same authority.
	TLS *auth.Authority
	// Issuer, if set, issues the tokens with which clients may also log in at SecureAddr.
	Issuer *auth.Issuer
	// Kerberos, if set, gives the tickets with which clients may also log in at SecureAddr.
	Kerberos *auth.Kerberos
	// ACLs restricts the users at MutualAddr, who have the common names of their certificates, to what
	// Allow allows. It needs TLS.
	ACLs bool
	// Loaded runs the broker with the JVM settings of Kafka's own start script, for lasting load;
	// otherwise it starts fast and takes little memory.
	Loaded bool

	recorded []string // the JVM flags of the broker whose classes are archived
}

var shared struct {
	sync.Mutex
	broker *Broker
}

// Shared returns the broker that all tests of this binary share. It does not create topics
// automatically: use [CreateTopic].
func Shared(t testing.TB) *Broker {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.broker != nil {
		return shared.broker
	}
	from := server.MustChoose(t, "Kafka", server.FromEnvironment("WEIR_TEST_KAFKA"), server.FromDocker(), server.FromMachine(lackJava))
	b := &Broker{}
	if from == server.Given {
		b.addrs, b.origin = strings.Split(os.Getenv("WEIR_TEST_KAFKA"), ","), "WEIR_TEST_KAFKA"
	} else {
		dir, err := server.SharedDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.init(from, dir, Options{}); err != nil {
			t.Fatal(err)
		}
		server.AtEnd(b.runner.Remove)
	}
	if err := b.waitReady(); err != nil {
		t.Fatal(err)
	}
	server.Announce(t, true, "Kafka from %s at %s", b.origin, strings.Join(b.addrs, ","))
	shared.broker = b
	return b
}

// New starts a broker that only this test uses, and may stop, kill and start again. It stops when
// the test ends.
func New(t testing.TB, opts Options) *Broker {
	t.Helper()
	offers := []server.Offer{server.FromDocker(), server.FromMachine(lackJava)}
	if opts.TLS != nil || opts.Dir != "" {
		offers = offers[1:] // a container has other ports and files
	}
	from := server.MustChoose(t, "Kafka", offers...)
	b := &Broker{t: t}
	if opts.TLS != nil {
		b.secure = newSecureListeners(t)
		opts.Config = b.secure.properties(t, opts)
	}
	if err := b.init(from, t.TempDir(), opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.runner.Remove() })
	if err := b.waitReady(); err != nil {
		t.Fatal(err)
	}
	server.Announce(t, false, "Kafka from %s at %s", b.origin, b.Addr())
	if opts.TLS != nil {
		b.addSecureUser()
	}
	return b
}

// init chooses ports, prepares dir and starts the broker as a cluster of its own.
func (b *Broker) init(from server.Origin, dir string, opts Options) error {
	var errs [2]error
	n := node{id: 1, cluster: clusterID}
	n.port, errs[0] = server.FreePort()
	n.controller, errs[1] = server.FreePort()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	n.voter = fmt.Sprintf("127.0.0.1:%d", n.controller)
	b.from, b.dir, b.node, b.opts = from, dir, n, opts
	return b.launch()
}

// launch prepares the broker's folder and starts it.
func (b *Broker) launch() (err error) {
	if b.from == server.Docker {
		b.addrs, b.runner, b.origin, err = inDocker(b.node, b.opts)
	} else {
		b.data = cmp.Or(b.opts.Dir, filepath.Join(b.dir, "data"))
		b.addrs, b.runner, b.origin, err = onMachine(b.dir, b.data, b.node, b.opts)
	}
	if err != nil {
		return err
	}
	if err := b.runner.Start(); err != nil {
		b.runner.Remove() // a container may be left over
		return fmt.Errorf("start Kafka from %s: %w", b.origin, err)
	}
	return nil
}

// Replace kills the broker and starts an empty cluster with another ID at its address, as when a
// DNS name is pointed at another site.
func (b *Broker) Replace() {
	b.t.Helper()
	b.Kill()
	b.runner.Remove()
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

// Addr returns the address of the first broker, host:port.
func (b *Broker) Addr() string { return b.addrs[0] }

// Addrs returns the bootstrap addresses.
func (b *Broker) Addrs() []string { return b.addrs }

// patience bounds a request to a broker that runs. It takes milliseconds, or seconds while the machine also starts other
// brokers.
const patience = 30 * time.Second

// Client returns a client with connections of its own.
func (b *Broker) Client() *kafka.Client {
	return &kafka.Client{Addr: kafka.TCP(b.addrs...), Transport: &kafka.Transport{DialTimeout: patience}, Timeout: patience}
}

// Stop ends the broker with SIGTERM, as an operator does, and waits.
func (b *Broker) Stop() { b.t.Helper(); b.end(syscall.SIGTERM) }

// Kill ends the broker with SIGKILL.
func (b *Broker) Kill() { b.t.Helper(); b.end(syscall.SIGKILL) }

// Pause suspends the broker until Resume or Kill: its connections stay open, and it does not
// answer.
func (b *Broker) Pause() { b.t.Helper(); b.signal(server.Pause) }

// Resume resumes the broker after Pause.
func (b *Broker) Resume() { b.t.Helper(); b.signal(server.Resume) }

func (b *Broker) signal(sig syscall.Signal) {
	b.t.Helper()
	if err := b.runner.Signal(sig); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Broker) end(sig syscall.Signal) {
	b.t.Helper()
	if err := b.runner.End(sig); err != nil {
		b.t.Fatal(err)
	}
}

// Start starts the broker after Stop or Kill, at the same address with the same data, and returns
// when it answers.
func (b *Broker) Start() {
	b.t.Helper()
	if err := b.runner.Start(); err != nil {
		b.t.Fatal(err)
	}
	if err := b.waitReady(); err != nil {
		b.t.Fatal(err)
	}
}

// waitReady waits until the broker lists itself in its metadata: from then on it accepts topics and
// records.
func (b *Broker) waitReady() error {
	client := b.Client()
	client.Timeout = time.Second
	defer closeIdle(client)
	return server.Await("Kafka from "+b.origin, b.runner, func(ctx context.Context) error {
		reply, err := client.Metadata(ctx, &kafka.MetadataRequest{})
		if err == nil && len(reply.Brokers) == 0 {
			err = errors.New("no broker in the metadata")
		}
		return err
	})
}

func closeIdle(c *kafka.Client) { c.Transport.(*kafka.Transport).CloseIdleConnections() }
