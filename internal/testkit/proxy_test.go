package testkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

var ctx = context.Background()

func incr(t *testing.T, client *redis.Client, key string, want int64) {
	t.Helper()
	got, err := client.Incr(ctx, key).Result()
	if err != nil {
		t.Fatal(err)
	}
	if got != want {
		t.Fatalf("INCR %s = %d, want %d", key, got, want)
	}
}

func TestProxyCutsHealsAndDelays(t *testing.T) {
	p := testkit.Proxy(t, redistest.Embedded(t).Addr())
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1})
	defer client.Close()
	incr(t, client, "n", 1)

	p.Cut()
	if err := client.Incr(ctx, "n").Err(); err == nil {
		t.Error("an answer came through the cut proxy")
	}
	p.Heal()
	incr(t, client, "n", 2)

	const delay = 30 * time.Millisecond
	p.Delay(delay)
	start := time.Now()
	incr(t, client, "n", 3)
	if took := time.Since(start); took < 2*delay {
		t.Errorf("the answer took %v, want at least %v", took, 2*delay)
	}
}

func TestProxyRetargets(t *testing.T) {
	first, second := redistest.Embedded(t), redistest.Embedded(t)
	p := testkit.Proxy(t, first.Addr())
	client := redis.NewClient(&redis.Options{Addr: p.Addr()})
	defer client.Close()
	incr(t, client, "n", 1)
	p.Retarget(second.Addr())
	incr(t, client, "n", 1)
	incr(t, client, "n", 2)
}

// A request whose reply is lost is executed.
func TestProxyLosesReplies(t *testing.T) {
	p := testkit.Proxy(t, redistest.Embedded(t).Addr())
	client := redis.NewClient(&redis.Options{Addr: p.Addr(), MaxRetries: -1, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	incr(t, client, "n", 1)
	p.LoseReplies()
	if n, err := client.Incr(ctx, "n").Result(); err == nil {
		t.Errorf("the reply %d arrived, want it to be lost", n)
	}
	p.Heal()
	incr(t, client, "n", 3)
}

// A hung proxy neither answers nor refuses; requests sent meanwhile are executed later.
func TestProxyHangs(t *testing.T) {
	p := testkit.Proxy(t, redistest.Embedded(t).Addr())
	client := redis.NewClient(&redis.Options{
		Addr: p.Addr(), MaxRetries: -1, ReadTimeout: time.Minute, ContextTimeoutEnabled: true, Protocol: 2, DisableIdentity: true,
	})
	defer client.Close()
	incr(t, client, "n", 1)
	p.Hang()
	p.Hang() // still hung
	soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	if n, err := client.Incr(soon, "n").Result(); err == nil {
		t.Errorf("the reply %d arrived, want none", n)
	}
	p.Heal()
	testkit.Eventually(t, time.Minute, "what was asked is done", func() (bool, string) {
		n, err := client.Get(ctx, "n").Result()
		return n == "2", n + " " + fmtError(err)
	})
	p.Hang()
	p.Cut() // cuts hung connections as well
	if err := client.Incr(ctx, "n").Err(); err == nil {
		t.Error("an answer came through the cut proxy")
	}
}

func fmtError(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
