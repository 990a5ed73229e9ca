package main

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The namespace is spread over more shards while events flow, by a command that is killed repeatedly while masters fail
// over. Processes continue by themselves, unless they were killed. Copies that are lost with a master are copied again.
// Afterwards the layout may come back as it was before.
var reshard = &fault{name: "namespace resharded", lane: interludeLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	r.killAllOrNone(random)
	layout := keyspace.LayoutKey(r.namespace())
	before, _ := r.redis.Client().HGetAll(context.Background(), layout).Result() // none while its master is down
	command := r.reshardCommand(random)
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
		r.attempt(time.Duration(20+random.IntN(300))*time.Millisecond, command...)
	}
	failing.Wait()
	r.weir(command...)
	writing.Wait()
	r.resharded(command)
	if random.IntN(4) == 0 {
		r.weir("reshard", "--delete-old")
	}
	if len(before) > 0 && random.IntN(4) == 0 {
		_ = r.redis.Client().HSet(context.Background(), layout, before).Err() // only the number of shards differs
	}
}}

// A replica is cut off while the namespace is spread over more shards, and takes over with what it has. An operator repeats
// the command until it succeeds. Before, the operator may try to delete the old keys, which is
// refused if the replica lacks any of the new ones.
var cutOffReplica = &fault{name: "replica cut off during a resharding", lane: interludeLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	r.redis.AwaitServing(r.kit)
	r.killAllOrNone(random)
	replica := r.redis.Standby(r.kit, random.IntN(3))
	command := r.reshardCommand(random)
	var writing, resharding sync.WaitGroup
	written := 1 + random.IntN(3000)
	writing.Go(func() { r.writer.more(written) })
	tookOver, took := context.WithCancel(context.Background())
	defer took()
	resharding.Go(func() {
		for tookOver.Err() == nil {
			r.attempt(10*time.Second, command...)
		}
	})
	pause(random, 0, 600*time.Millisecond)
	replica.CutOff()
	pause(random, 0, 4*time.Second)
	replica.TakeOver()
	took()
	resharding.Wait()
	r.redis.AwaitServing(r.kit)
	for _, p := range r.processors {
		p.Start() // it corrects a layout that went back to before the switch
	}
	deleted := random.IntN(2) == 0 && strings.HasPrefix(r.attempt(time.Minute, "reshard", "--delete-old"), "deleted")
	if !deleted { // else the replica had everything
		r.weir(command...)
	}
	writing.Wait()
	r.resharded(command)
}}

// reshardCommand draws a command that spreads the namespace over more shards.
func (r *round) reshardCommand(random *rand.Rand) []string {
	return []string{"reshard", "--to", strconv.Itoa(r.scenario.Shards * (2 + random.IntN(3))), "--yes"}
}

// attempt runs a command of the binary, which may fail, and is killed if it takes longer than a time. It returns what the
// command says.
func (r *round) attempt(within time.Duration, command ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	out, _ := exec.CommandContext(ctx, r.trials.binary, slices.Concat(command, r.settings())...).Output()
	return string(out)
}

// resharded takes over the new number of shards.
func (r *round) resharded(command []string) {
	r.scenario.Shards, _ = strconv.Atoi(command[2])
	r.store = r.openStore()
}
