package main

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"

	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The namespace is spread over more shards while events flow, by a command that is killed repeatedly while masters fail
// over. Processes continue by themselves, unless they were killed. Copies that are lost with a master are copied again.
// Afterwards the layout may come back as it was before.
var reshard = &fault{name: "namespace resharded", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	r.killAllOrNone(random)
	layout := keyspace.LayoutKey(r.namespace())
	before, _ := r.redis.Client().HGetAll(context.Background(), layout).Result() // none while its master is down
	command := []string{"reshard", "--to", strconv.Itoa(r.scenario.Shards * (2 + random.IntN(3))), "--yes"}
	var failing sync.WaitGroup
	if r.scenario.Topology != "single" {
		masters := r.random("failover while resharding")
		failing.Go(func() {
			pause(masters, 0, time.Second)
			failOver.happen(r, masters)
		})
	}
	var writing sync.WaitGroup
	written := 1 + random.IntN(3000)
	writing.Go(func() { r.writer.more(written) })
	for range random.IntN(5) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(20+random.IntN(300))*time.Millisecond)
		_ = exec.CommandContext(ctx, r.trials.binary, slices.Concat(command, r.settings())...).Run() // killed, or finished
		cancel()
	}
	failing.Wait()
	r.weir(command...)
	writing.Wait()
	r.scenario.Shards, _ = strconv.Atoi(command[2])
	r.store = redisstore.New(r.redis.Client(), r.namespace(), r.scenario.Shards)
	if random.IntN(4) == 0 {
		r.weir("reshard", "--delete-old")
	}
	if len(before) > 0 && random.IntN(4) == 0 {
		_ = r.redis.Client().HSet(context.Background(), layout, before).Err() // only the number of shards differs
	}
}}
