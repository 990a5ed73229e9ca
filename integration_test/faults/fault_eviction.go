package main

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// The memory of a server is limited for a moment, with a policy that lets it evict keys: in some rounds progress and
// the namespace's own keys, too. Answers say from when on they are complete again.
var evictKeys = &fault{name: "keys evicted", lane: interludeLane, topologies: onRedis, forgets: true, happen: func(r *round, random *rand.Rand) {
	client := redis.NewClient(&redis.Options{Addr: r.redis.Master(random.IntN(3)).Addr()})
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	number := func(section, name string) int64 {
		_, after, _ := strings.Cut(client.Info(ctx, section).Val(), name+":")
		digits, _, _ := strings.Cut(after, "\r\n")
		n, _ := strconv.ParseInt(digits, 10, 64)
		return n
	}
	policy := []string{"allkeys-random", "volatile-random", "allkeys-lru"}[random.IntN(3)]
	before, step := number("stats", "evicted_keys"), int64(0)
	testkit.Eventually(r.kit, time.Minute, "keys are evicted", func() (bool, string) {
		step += 16 << 10
		client.ConfigSet(ctx, "maxmemory-policy", policy)
		client.ConfigSet(ctx, "maxmemory", strconv.FormatInt(max(number("memory", "used_memory")-step, 1), 10))
		client.Set(ctx, "another", "x", time.Minute) // makes it evict
		client.ConfigSet(ctx, "maxmemory", "0")
		client.ConfigSet(ctx, "maxmemory-policy", "noeviction")
		n := number("stats", "evicted_keys") - before
		return n > 0, strconv.FormatInt(n, 10)
	})
}}
