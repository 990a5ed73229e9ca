package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
)

// A server is restored from a copy that is some seconds old.
var olderCopy = &fault{name: "older copy", lane: redisLane, topologies: []string{"single", "cluster"}, happen: func(r *round, random *rand.Rand) {
	n := r.redis.Master(random.IntN(3))
	old := n.SaveCopy()
	pause(random, 0, 4*time.Second)
	n.RestoreCopy(old)
	r.redis.AwaitServing(r.kit)
}}

// The plans of the namespace alone are put back to what they were some seconds ago, as by a failover of their master, while all
// else goes on.
var plansBack = &fault{name: "plans put back", lane: redisLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	key := r.namespace() + ":plans"
	attempt := func(what string, try func(ctx context.Context) error) {
		testkit.Eventually(r.kit, 20*time.Second, what, func() (bool, string) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			err := try(ctx)
			return err == nil, fmt.Sprint(err)
		})
	}
	var held map[string]string
	attempt("the plans are copied", func(ctx context.Context) (err error) {
		held, err = r.redis.Client().HGetAll(ctx, key).Result()
		return err
	})
	pause(random, time.Second, 6*time.Second)
	attempt("the plans are put back", func(ctx context.Context) error {
		_, err := r.redis.Client().TxPipelined(ctx, func(back redis.Pipeliner) error {
			back.Del(ctx, key)
			if len(held) > 0 {
				back.HSet(ctx, key, held)
			}
			return nil
		})
		return err
	})
}}
