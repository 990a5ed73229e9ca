// Package ignitetest starts Apache Ignite nodes for tests. See package testkit for where they come from.
package ignitetest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/server"
	"github.com/weir-stream/weir/store/ignite/thin"
)

//go:embed pom.xml
var pom []byte

//go:embed node.xml
var nodeXML string

// Jars returns the jars of a node.
func Jars() *server.Jars {
	return &server.Jars{Name: "ignite", POM: pom, Witness: "ignite-core-", Env: "WEIR_IGNITE_HOME"}
}

// Cluster is a cluster of nodes.
type Cluster struct {
	Nodes  []*Node
	Spares []*Node // which join the others when they are started
	CA     string  // a file of the nodes' certificate, if they have one
}

// Node is a node of a cluster.
type Node struct {
	Address string // of the thin-client connector
	process *server.Process
	login   thin.Login // with which it is asked whether it has started
}

// Options say how the nodes of a cluster differ from others.
type Options struct {
	Nodes, Spares int
	JVM           []string // brief if nil
	// Authority signs the certificates that clients must show; nil for no encryption. The nodes' own is in Cluster.CA.
	Authority *auth.Authority
	// Persistent nodes keep state over a restart, and know users with passwords. They do nothing until Activate.
	Persistent bool
	// Region bounds the memory for state, in MB; 0 for Ignite's default.
	Region int
	// Caches are those that the nodes have from their configuration: properties in XML, by name.
	Caches map[string]string

	recorded []string // the JVM flags of the node whose classes are archived
}

var shared struct {
	sync.Mutex
	cluster *Cluster
}

// Shared returns the cluster of one node that all tests of this binary share. A test uses only caches of its own.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.cluster != nil {
		return shared.cluster
	}
	choose(t)
	dir, err := server.SharedDir()
	if err != nil {
		t.Fatal(err)
	}
	c, err := start(dir, &Options{Nodes: 1})
	if err != nil {
		t.Fatal(err)
	}
	server.AtEnd(c.remove)
	server.Announce(t, true, "Ignite from local java, version %s", Jars().Version())
	shared.cluster = c
	return c
}

// New starts a cluster that only this test uses, and may break. It stops when the test ends.
func New(t testing.TB, nodes int) *Cluster {
	t.Helper()
	return NewWith(t, &Options{Nodes: nodes})
}

// NewLoaded starts a cluster as New does, whose nodes get the memory and the compiler for a load.
func NewLoaded(t testing.TB, nodes int) *Cluster {
	t.Helper()
	return NewWith(t, &Options{Nodes: nodes, JVM: []string{"-Xms1g", "-Xmx1g", "-XX:+UseG1GC"}})
}

// brief has a node start fast, and lets several fit beside the tests.
var brief = []string{"-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}

// NewWith starts a cluster as New does.
func NewWith(t testing.TB, o *Options) *Cluster {
	t.Helper()
	choose(t)
	c, err := start(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.remove)
	server.Announce(t, false, "%d nodes of Ignite from local java, version %s", o.Nodes, Jars().Version())
	return c
}

func choose(t testing.TB) { server.MustChoose(t, "Ignite", server.FromMachine(Jars().Lack)) }

// Addresses returns the addresses of all nodes.
func (c *Cluster) Addresses() (list []string) {
	for _, n := range c.Nodes {
		list = append(list, n.Address)
	}
	return list
}

func (c *Cluster) remove() {
	for _, n := range append(c.Nodes, c.Spares...) {
		n.process.Remove()
	}
}

// start starts nodes that find each other.
func start(dir string, o *Options) (*Cluster, error) {
	home, err := Jars().Fetch()
	if err != nil {
		return nil, err
	}
	const perNode = 3 // client, discovery, communication
	ports := make([]int, perNode*(o.Nodes+o.Spares))
	var peers strings.Builder
	for i := range ports {
		if ports[i], err = server.FreePort(); err != nil {
			return nil, err
		}
		if i%perNode == 1 {
			fmt.Fprintf(&peers, "<value>127.0.0.1:%d</value>", ports[i])
		}
	}
	jvm := o.JVM
	if jvm == nil {
		jvm = brief
	}
	flags := o.recorded
	if flags == nil {
		flags = server.Archive(home, record)
	}
	jvm = slices.Concat(jvm, flags)
	c := &Cluster{}
	encryption, login, err := c.encryption(dir, o)
	if err != nil {
		return nil, err
	}
	for i := range o.Nodes + o.Spares {
		at := ports[perNode*i:]
		of := filepath.Join(dir, fmt.Sprint("node", i))
		if err := os.MkdirAll(of, 0o700); err != nil {
			return nil, err
		}
		// A node that hangs is given up soon, so that tests need not wait for it.
		const failure = "3000"
		text := strings.NewReplacer("NAME", fmt.Sprint("weir", i), "DIR", of, "PEERS", peers.String(), "FAILURE", failure,
			"CLIENT", strconv.Itoa(at[0]), "DISCOVERY", strconv.Itoa(at[1]), "COMMUNICATION", strconv.Itoa(at[2]),
			"MORE", o.more(), "ENCRYPTION", encryption).Replace(nodeXML)
		file := filepath.Join(of, "node.xml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		n := &Node{Address: fmt.Sprintf("127.0.0.1:%d", at[0]), process: server.NewProcess(of, "java", slices.Concat(jvm, arguments(home, file))...), login: login}
		if i >= o.Nodes {
			c.Spares = append(c.Spares, n)
			continue
		}
		c.Nodes = append(c.Nodes, n)
		if err := n.Start(); err != nil {
			c.remove()
			return nil, err
		}
	}
	return c, nil
}

// record starts a node whose classes are archived.
func record(dir, flag string) (*server.Process, error) {
	c, err := start(dir, &Options{Nodes: 1, recorded: []string{flag}})
	if err != nil {
		return nil, err
	}
	return c.Nodes[0].process, nil
}

// opened are packages of the JDK that Ignite uses by reflection.
var opened = []string{
	"java.base/java.io", "java.base/java.lang", "java.base/java.lang.invoke", "java.base/java.lang.reflect", "java.base/java.math",
	"java.base/java.net", "java.base/java.nio", "java.base/java.text", "java.base/java.time", "java.base/java.util",
	"java.base/java.util.concurrent", "java.base/java.util.concurrent.atomic", "java.base/java.util.concurrent.locks",
	"java.base/jdk.internal.access", "java.base/jdk.internal.misc", "java.base/sun.nio.ch", "java.base/sun.util.calendar",
	"java.management/com.sun.jmx.mbeanserver", "java.management/sun.management", "java.sql/java.sql",
	"jdk.internal.jvmstat/sun.jvmstat.monitor", "jdk.management/com.sun.management.internal",
}

func arguments(home, file string) []string {
	args := []string{
		"-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
		"-DIGNITE_QUIET=true", "-DIGNITE_UPDATE_NOTIFIER=false", "-DIGNITE_PERFORMANCE_SUGGESTIONS_DISABLED=true",
	}
	for _, p := range opened {
		args = append(args, "--add-opens="+p+"=ALL-UNNAMED")
	}
	return append(args, "-cp", filepath.Join(home, "*"), "org.apache.ignite.startup.cmdline.CommandLineStartup", file)
}

// Start starts the node, also after it was killed, and waits until it answers. A node that joins while others leave may end itself,
// and on a busy machine one in some may lack its views, so it is tried again.
func (n *Node) Start() (err error) {
	for range 6 {
		if err = n.start(); err == nil || !n.Ended() {
			break
		}
	}
	return err
}

func (n *Node) start() error {
	if err := n.process.Start(); err != nil {
		return err
	}
	client := thin.New(thin.Config{Addresses: []string{n.Address}, Login: n.login, Request: server.StartTimeout})
	defer func() { _ = client.Close() }()
	var lacking time.Time // since when
	return server.Await("Ignite", n.process, func(ctx context.Context) error {
		_, err := client.Copies(ctx, "MOVING")
		switch {
		case err == nil || strings.Contains(err.Error(), "the cluster is inactive"):
			return nil
		case !strings.Contains(err.Error(), "not found"):
		case lacking.IsZero():
			lacking = time.Now()
		case time.Since(lacking) > patience: // started where it had too little CPU, it may lack the view for ever
			return errors.Join(err, n.Kill())
		}
		return err
	})
}

// patience is how long a node may lack a view after it has begun to answer.
const patience = 5 * time.Second

// PID returns the ID of the node's process.
func (n *Node) PID() int { return n.process.PID() }

// Ended reports whether the node has ended: one that others have gone on without ends itself.
func (n *Node) Ended() bool {
	select {
	case <-n.process.Gone():
		return true
	default:
		return false
	}
}

// Kill kills the node.
func (n *Node) Kill() error { return n.process.End(syscall.SIGKILL) }

// Hang stops the node from answering, until Resume. One that has ended itself stays so.
func (n *Node) Hang() error { return n.signal(syscall.SIGSTOP) }

// Resume lets a node that hangs go on.
func (n *Node) Resume() error { return n.signal(syscall.SIGCONT) }

func (n *Node) signal(s syscall.Signal) error {
	if err := n.process.Signal(s); !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}
