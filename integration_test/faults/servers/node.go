package servers

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// NewReplica starts a replica of the master at an address, host:port.
func NewReplica(k *Kit, master string) *Node {
	return &Node{Server: redistest.NewReplica(k, master)}
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

// AwaitMended waits until a processor has made the server rewrite its append-only file. Redis 7.0
// has a bug: a torn file keeps the first writes of a script, and the start after the next runs them
// again. The server must not crash again before the rewrite. AwaitMended returns whether the file
// was rewritten; a server without such a file, or without a script call since its start, needs no
// rewrite.
func (n *Node) AwaitMended(k *Kit) (mended bool) {
	if !n.AOF {
		return false
	}
	quiet := time.Now().Add(mendWithin)
	testkit.Eventually(k, time.Minute, "the processors have "+n.Addr()+" rewrite its file", func() (bool, string) {
		info, err := n.info("all")
		if err != nil {
			return false, err.Error()
		}
		mended = !strings.Contains(info, "aof_last_rewrite_time_sec:-1") && strings.Contains(info, "aof_rewrite_in_progress:0")
		idle := time.Now().After(quiet) && !applied(info)
		follows := strings.Contains(info, "role:slave") // a replica rewrites its file when it synchronizes
		return mended || idle || follows, info
	})
	return mended
}

// mendWithin bounds how long processors take to notice a restarted server.
const mendWithin = 10 * time.Second

// applied reports, from a server's INFO, whether a script has run since its start.
func applied(info string) bool {
	calls := regexp.MustCompile(`cmdstat_evalsha:calls=(\d+),.*failed_calls=(\d+)`).FindStringSubmatch(info)
	return calls != nil && calls[1] != calls[2]
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

// isMaster reports whether the server considers itself a master.
func (n *Node) isMaster() bool {
	info, err := n.info("replication")
	return err == nil && strings.Contains(info, "role:master")
}
