package redistest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

var ctx = context.Background()

func incr(t *testing.T, client redis.Cmdable, key string, want int64) {
	t.Helper()
	got, err := client.Incr(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("INCR %s = %d, want %d", key, got, want)
	}
}

func TestSharedRedisAnswers(t *testing.T) {
	r := Shared(t)
	if Shared(t) != r {
		t.Error("a second call returned another server")
	}
	incr(t, r.Client(t), testkit.Namespace(t), 1)
}

func TestRedisKeepsAOFOverKill(t *testing.T) {
	r := New(t, Options{AOF: true})
	client := r.Client(t)
	incr(t, client, "n", 1)
	r.Kill()
	if err := client.Ping(ctx).Err(); err == nil {
		t.Error("the killed server answers")
	}
	r.Start()
	incr(t, client, "n", 2)
}

func TestRedisWithoutAOFForgets(t *testing.T) {
	r := New(t, Options{Config: map[string]string{"maxmemory": "10mb"}})
	client := r.Client(t)
	incr(t, client, "n", 1)
	r.Kill()
	r.Start()
	incr(t, client, "n", 1)
	if got := client.ConfigGet(ctx, "maxmemory").Val()["maxmemory"]; got != "10485760" {
		t.Errorf("maxmemory = %s, want 10485760", got)
	}
}

// A server with a torn file has the writes before the tear.
func TestRedisLoadsATornAOF(t *testing.T) {
	r := New(t, Options{AOF: true})
	client := r.Client(t)
	incr(t, client, "n", 1)
	incr(t, client, "n", 2)
	// While the file is being synced, the server answers before it has written to it.
	testkit.Eventually(t, time.Minute, "all is written to the file", func() (bool, string) {
		info := client.Info(ctx, "persistence").Val()
		return strings.Contains(info, "aof_buffer_length:0\r\n"), info
	})
	r.Kill()
	if cut := r.TearAOF(3); cut != 3 {
		t.Errorf("cut %d bytes, want 3", cut)
	}
	r.Start()
	incr(t, client, "n", 2)
}

// A paused server keeps its connections, and answers when it resumes.
func TestRedisPauses(t *testing.T) {
	r := New(t, Options{})
	client := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, ReadTimeout: time.Minute, ContextTimeoutEnabled: true})
	defer client.Close()
	incr(t, client, "n", 1)
	r.Pause()
	soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if err := client.Incr(soon, "n").Err(); err == nil {
		t.Error("the paused server answers")
	}
	r.Resume()
	incr(t, client, "n", 3)
}

// A slot moves to another master with its keys, and clients follow.
func TestSlotMoves(t *testing.T) {
	c := NewCluster(t)
	client := c.Client(t)
	slot := int(client.ClusterKeySlot(ctx, "{tag}").Val())
	owner := slices.IndexFunc(c.Nodes, func(n *Server) bool { return n.Client(t).Set(ctx, "{tag}", 1, 0).Err() == nil })
	for i := range int64(50) {
		incr(t, client, fmt.Sprint("{tag}", i), 1)
	}
	to := c.Nodes[(owner+1)%len(c.Nodes)]
	if err := MoveSlot(ctx, slot, c.Nodes[owner], to, c.Nodes...); err != nil {
		t.Fatal(err)
	}
	for i := range int64(50) {
		incr(t, client, fmt.Sprint("{tag}", i), 2)
	}
	if n := to.Client(t).ClusterCountKeysInSlot(ctx, slot).Val(); n != 51 {
		t.Errorf("%d keys have moved, want 51", n)
	}
}

func TestRestoreCopyGoesBackInTime(t *testing.T) {
	for name, opts := range map[string]Options{"aof": {AOF: true}, "snapshot": {}} {
		t.Run(name, func(t *testing.T) {
			r := New(t, opts)
			client := r.Client(t)
			incr(t, client, "n", 1)
			older := r.SaveCopy()
			incr(t, client, "n", 2)
			r.RestoreCopy(older)
			incr(t, client, "n", 2)
		})
	}
}

func TestReplicaTakesOver(t *testing.T) {
	primary := New(t, Options{})
	incr(t, primary.Client(t), "n", 1)
	replica := NewReplica(t, primary.Addr())
	primary.Kill()
	client := replica.Client(t)
	if err := client.Incr(ctx, "n").Err(); !redis.HasErrorPrefix(err, "READONLY") {
		t.Errorf("a replica's answer to a write = %v, want READONLY", err)
	}
	replica.Promote()
	incr(t, client, "n", 2)
}

func TestRedisClusterServesAllSlots(t *testing.T) {
	c := NewCluster(t)
	client := c.Client(t)
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} { // on all three masters
		incr(t, client, key, 1)
	}
	for _, node := range c.Nodes {
		if n := node.Client(t).DBSize(ctx).Val(); n == 0 {
			t.Errorf("%s holds no key", node.Addr())
		}
	}
	c.Nodes[0].Kill()
	c.Nodes[0].Start()
	c.WaitOK(t)
	incr(t, client, "a", 2)
	incr(t, client, "b", 2)
	incr(t, client, "c", 2)
}

func TestMiniredisExpiresAsTimePasses(t *testing.T) {
	m := Embedded(t)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	if err := client.Set(ctx, "k", "v", time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		pass time.Duration
		want int64
	}{{59 * time.Second, 1}, {time.Second, 0}} {
		m.FastForward(step.pass)
		if n := client.Exists(ctx, "k").Val(); n != step.want {
			t.Errorf("after %v more, EXISTS = %d, want %d", step.pass, n, step.want)
		}
	}
}
