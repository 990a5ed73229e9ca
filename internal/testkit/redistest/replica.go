package redistest

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// NewReplica starts a replica of the server at the address primary, which may be that of a
// [testkit.Proxy], and returns when the replica has the data and receives the writes that follow.
func NewReplica(t testing.TB, primary string) *Server {
	t.Helper()
	return NewReplicaWith(t, primary, Options{})
}

// NewReplicaWith is NewReplica with settings.
func NewReplicaWith(t testing.TB, primary string, opts Options) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, opts)
	client := r.Client(t)
	if err := client.ReplicaOf(context.Background(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, fmt.Sprintf("replication from %s to %s", primary, r.addr), func() (bool, string) {
		info, err := client.Info(context.Background(), "replication").Result()
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(info, "master_link_status:up"), info
	})
	// A replica that has the data receives later writes only after its first acknowledgement, which
	// it sends once a second.
	from := redis.NewClient(&redis.Options{Addr: primary})
	defer from.Close()
	if err := from.Publish(context.Background(), "replicated", "").Err(); err != nil {
		t.Fatal(err)
	}
	want := offset(t, from, "master_repl_offset")
	testkit.Eventually(t, time.Minute, fmt.Sprintf("what was published at %s to come to %s", primary, r.addr), func() (bool, string) {
		got := offset(t, client, "slave_repl_offset")
		return got >= want, fmt.Sprintf("it has %d of %d bytes", got, want)
	})
	server.Announce(t, false, "Redis replica from %s at %s", r.origin, r.addr)
	return r
}

// offset returns the replication offset of that name from a server's INFO.
func offset(t testing.TB, client *redis.Client, name string) int64 {
	t.Helper()
	info, err := client.Info(context.Background(), "replication").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(info, name+":")
	text, _, _ = strings.Cut(text, "\r\n")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s in INFO replication: %v\n%s", name, err, info)
	}
	return n
}

// Promote makes a replica a primary with the data it has.
func (r *Server) Promote() {
	r.t.Helper()
	if err := r.Client(r.t).ReplicaOf(context.Background(), "NO", "ONE").Err(); err != nil {
		r.t.Fatalf("promote %s: %v", r.addr, err)
	}
}
