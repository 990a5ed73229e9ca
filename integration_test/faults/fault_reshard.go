package main

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"time"
)

// The namespace is spread over more shards, by a command that is killed again and again while masters fail over. What is
// lost with a master is copied again.
var reshard = &fault{name: "namespace resharded", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	r.killAllOrNone(random)
	command := []string{"reshard", "--to", strconv.Itoa(r.scenario.Shards * (2 + random.IntN(3))), "--yes"}
	var failing sync.WaitGroup
	if r.scenario.Topology != "single" {
		masters := r.random("failover while resharding")
		failing.Go(func() {
			pause(masters, 0, time.Second)
			failOver.happen(r, masters)
		})
	}
	for range random.IntN(5) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(20+random.IntN(300))*time.Millisecond)
		_ = exec.CommandContext(ctx, r.trials.binary, slices.Concat(command, r.settings())...).Run() // killed, or done
		cancel()
	}
	failing.Wait()
	r.weir(command...)
	for _, p := range r.all() {
		p.Stop()
	}
	r.retired = append(r.retired, r.all()...)
	r.scenario.Shards, _ = strconv.Atoi(command[2])
	r.begin()
	if random.IntN(2) == 0 {
		r.weir("reshard", "--delete-old")
	}
}}
