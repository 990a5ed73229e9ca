package servers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// newReplica starts a replica of the master at an address, host:port.
func newReplica(k *Kit, master string) *Node {
	return &Node{Server: redistest.NewReplicaWith(k, master, redistest.Options{OwnClock: true})}
}

// Node is a Redis server that knows whether it was killed.
type Node struct {
	*redistest.Server
	AOF bool // has an append-only file

	mu   sync.Mutex
	down bool
}

// Kill ends the server with SIGKILL.
func (n *Node) Kill() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Server.Kill()
	n.down = true
}

// Start starts the server if it was killed.
func (n *Node) Start() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.down {
		n.Server.Start()
		n.down = false
	}
}

// info returns a section of the server's INFO.
func (n *Node) info(section string) (string, error) {
	client := redis.NewClient(&redis.Options{Addr: n.Addr(), MaxRetries: -1})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return client.Info(ctx, section).Result()
}

// command runs a command on the server at an address, host:port.
func command(ctx context.Context, address string, args ...any) error {
	client := redis.NewClient(&redis.Options{Addr: address, Protocol: 2})
	defer client.Close()
	return client.Do(ctx, args...).Err()
}

// linked reports whether a replica follows its master; it is true of a master.
func (n *Node) linked() (bool, string) {
	info, err := n.info("replication")
	if err != nil {
		return false, err.Error()
	}
	ok := strings.Contains(info, "role:master") || strings.Contains(info, "master_link_status:up")
	return ok, fmt.Sprintf("%s: %s", n.Addr(), info)
}

// replicaOf reports whether the server follows another one.
func (n *Node) replicaOf(master *Node) bool {
	info, err := n.info("replication")
	_, port, _ := strings.Cut(master.Addr(), ":")
	return err == nil && strings.Contains(info, "role:slave") && strings.Contains(info, "master_port:"+port+"\r\n")
}

// isMaster reports whether the server considers itself a master.
func (n *Node) isMaster() bool {
	info, err := n.info("replication")
	return err == nil && strings.Contains(info, "role:master")
}
