package redisconn

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/operate/doctor"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// check collects findings.
type check struct {
	events   bool // are written
	eviction bool // is allowed
	findings doctor.Findings
}

func (c *check) add(verdict doctor.Verdict, subject, format string, args ...any) {
	c.findings = append(c.findings, doctor.Finding{Verdict: verdict, Subject: subject, Found: fmt.Sprintf(format, args...)})
}

func (c *check) fail(subject string, err error) { c.add(doctor.Fail, subject, "%v", err) }

// Check checks Redis and the settings of it that Weir relies on: if events are applied, that it takes writes, and if
// questions are asked, the replicas that they are read from.
func Check(ctx context.Context, cfg *config.Config, events, questions bool) doctor.Findings {
	c := &check{events: events, eviction: cfg.Redis.AllowEviction}
	c.deployment(ctx, cfg, questions)
	return c.findings
}

func (c *check) deployment(ctx context.Context, cfg *config.Config, questions bool) {
	client, err := Client(cfg)
	if err != nil {
		c.fail("redis", err)
		return
	}
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		c.fail("redis", fmt.Errorf("%s: %w", strings.Join(cfg.Redis.Addresses, ","), reworded.Connection(err)))
		return
	}
	c.servers(ctx, client)
	state, err := NewStore(cfg, client)
	if err != nil {
		c.fail("layout", err)
		return
	}
	fits, err := doctor.Adopt(ctx, state)
	if err != nil {
		c.fail("layout", err)
		return
	}
	c.add(doctor.OK, "layout", "%s", fits)
	if questions {
		c.replicas(ctx, cfg, client)
	}
}

// servers checks the server, or each master of a cluster.
func (c *check) servers(ctx context.Context, client redis.UniversalClient) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		c.server(ctx, "redis", client)
		return
	}
	var mu sync.Mutex // masters are checked concurrently
	var servers []*redis.Client
	err := cluster.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		servers = append(servers, server)
		return nil
	})
	if err != nil {
		c.fail("redis", err)
	}
	for _, server := range servers {
		c.server(ctx, "redis "+server.Options().Addr, server)
	}
}

// server checks one server.
func (c *check) server(ctx context.Context, name string, client redis.Cmdable) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		c.fail(name, err)
		return
	}
	info := doctor.ParseInfo(text)
	if err := doctor.Supported(info["redis_version"]); err != nil {
		c.fail(name, err)
	} else {
		c.add(doctor.OK, name, "version %s", info["redis_version"])
	}
	if c.events && info["role"] == "slave" {
		c.add(doctor.Fail, name, "is a replica, which accepts no writes: set redis.addresses to the master, or use redis.mode sentinel or cluster")
	}
	switch policy := info["maxmemory_policy"]; {
	case policy == "noeviction":
	case policy == "" || info["maxmemory"] == "0" || c.eviction:
		c.add(doctor.Warn, name, "maxmemory-policy is %s: answers are INCOMPLETE once keys are evicted; set noeviction", cmp.Or(policy, "unknown"))
	default:
		c.add(doctor.Fail, name, "maxmemory-policy is %s: set noeviction, or redis.allow_eviction: true, with which answers are INCOMPLETE once keys are evicted", policy)
	}
	if info["aof_enabled"] != "1" {
		c.add(doctor.Warn, name, "appendonly is off: after a crash the state is that of the last snapshot, and events since then are read again")
	}
}

// replicas checks the replicas that questions are read from.
func (c *check) replicas(ctx context.Context, cfg *config.Config, client redis.UniversalClient) {
	replicas, err := replicaClient(cfg)
	if err != nil {
		c.fail("replicas", err)
		return
	}
	if replicas == nil {
		return
	}
	defer replicas.Close()
	reading := redisstore.ReadFromReplicas(replicas, cfg.Redis.MaxStaleness, slog.New(slog.DiscardHandler))
	state, err := NewStore(cfg, client, reading)
	if err != nil {
		c.fail("replicas", err)
		return
	}
	for _, f := range doctor.Replicas(ctx, state) {
		if f.Verdict == doctor.OK {
			c.add(doctor.OK, f.Subject, "%s", f.Found)
		} else {
			c.add(doctor.Warn, f.Subject, "%s; %s", f.Found, f.Do)
		}
	}
}
