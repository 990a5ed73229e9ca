package testkit

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

// NewRedisReplica starts a server that replicates the one at the address
// primary, be it that of a [Proxy], and returns when it has its data.
func NewRedisReplica(t testing.TB, primary string) *RedisServer {
	t.Helper()
	host, port, err := net.SplitHostPort(primary)
	if err != nil {
		t.Fatal(err)
	}
	r := newRedis(t, ephemeralPorts, RedisOptions{Config: map[string]string{"replica-read-only": "yes"}})
	client := r.Client(t)
	if err := client.ReplicaOf(context.Background(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	Eventually(t, time.Minute, fmt.Sprintf("replication from %s to %s", primary, r.addr), func() (bool, string) {
		info, err := client.Info(context.Background(), "replication").Result()
		if err != nil {
			return false, err.Error()
		}
		return strings.Contains(info, "master_link_status:up"), info
	})
	announce(t, false, "Redis replica from %s at %s", r.origin, r.addr)
	return r
}

// Promote makes a replica a primary with the data it has.
func (r *RedisServer) Promote() {
	r.t.Helper()
	if err := r.Client(r.t).ReplicaOf(context.Background(), "NO", "ONE").Err(); err != nil {
		r.t.Fatalf("promote %s: %v", r.addr, err)
	}
}
