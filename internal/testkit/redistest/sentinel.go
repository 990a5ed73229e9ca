package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Sentinel is a single Redis Sentinel, with a quorum of one.
type Sentinel struct {
	addr, name string
	client     *redis.SentinelClient
}

// downAfter is how long a primary must be silent before its Sentinel replaces it.
const downAfter = time.Second

// NewSentinel starts a Sentinel for this test, a local redis-server that monitors a primary under a
// name, and returns once it knows the given number of replicas. It promotes one of them a second
// after the primary is gone.
func NewSentinel(t testing.TB, name string, primary *Server, replicas int) *Sentinel {
	t.Helper()
	server.MustChoose(t, "Redis Sentinel", server.FromMachine(lackLocal)) // its settings file is on this machine
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	host, primaryPort, err := net.SplitHostPort(primary.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	settings := filepath.Join(dir, "sentinel.conf") // the Sentinel writes its state there
	text := fmt.Sprintf(`bind 127.0.0.1
port %d
dir %s
sentinel monitor %s %s %s 1
sentinel down-after-milliseconds %[3]s %[6]d
sentinel failover-timeout %[3]s 5000
`, port, dir, name, host, primaryPort, downAfter.Milliseconds())
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := server.NewProcess(dir, "redis-server", settings, "--sentinel")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Remove)
	s := &Sentinel{addr: fmt.Sprintf("127.0.0.1:%d", port), name: name}
	s.client = redis.NewSentinelClient(&redis.Options{Addr: s.addr})
	t.Cleanup(func() { _ = s.client.Close() })
	testkit.Eventually(t, time.Minute, "the Sentinel knows the replicas", func() (bool, string) {
		known, err := s.client.Replicas(context.Background(), name).Result()
		return err == nil && len(known) == replicas, fmt.Sprint(known, err)
	})
	server.Announce(t, false, "Redis Sentinel from local redis-server at %s", s.addr)
	return s
}

// Addr returns its address, host:port.
func (s *Sentinel) Addr() string { return s.addr }

// Master returns the address of the current master.
func (s *Sentinel) Master(ctx context.Context) (string, error) {
	parts, err := s.client.GetMasterAddrByName(ctx, s.name).Result()
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(parts[0], parts[1]), nil
}

// Content reports whether the Sentinel has just heard from the current master and has no failover under way; if not,
// detail is the Sentinel's view of the master. A failover that has begun continues even if the old master comes back,
// and writes to it meanwhile are lost.
func (s *Sentinel) Content() (ok bool, detail string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	master, err := s.client.Master(ctx, s.name).Result()
	if err != nil {
		return false, err.Error()
	}
	heard, err := strconv.ParseInt(master["last-ok-ping-reply"], 10, 64)
	ok = err == nil && heard < downAfter.Milliseconds() && master["flags"] == "master"
	return ok, fmt.Sprintf("the Sentinel says of %s:%s that it is %q, and was heard %s ms ago",
		master["ip"], master["port"], master["flags"], master["last-ok-ping-reply"])
}
