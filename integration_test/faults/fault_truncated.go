package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/state"
)

// The broker dies and loses the ends of its logs. What was applied of them stays, and what is
// written in their place counts as well.
var truncateLog = &fault{name: "log truncated", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	before := map[state.Partition]int64{}
	for _, p := range r.kafka.partitions() {
		before[p] = r.kafka.LogSize(p.Topic, p.ID)
	}
	// A tail without transactions: the brokers would wait for ever for the end of one that is
	// lost without its marker.
	r.writer.more(50 + random.IntN(200))
	r.awaitApplied()
	r.ledger.take()
	r.killAllOrNone(random)
	r.kafka.Kill()
	for _, p := range r.kafka.partitions() {
		if size := r.kafka.LogSize(p.Topic, p.ID); size > before[p] && random.IntN(3) > 0 {
			r.kafka.TruncateLog(p.Topic, p.ID, before[p]+random.Int64N(size-before[p]))
		}
	}
	r.kafka.Start()
	wait(r.kit, time.Minute, "the ends of the truncated logs", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		ends, err := r.kafka.ends(ctx)
		if err != nil {
			return false, err.Error()
		}
		for p, end := range ends {
			r.ledger.diverge(p, end)
		}
		return true, ""
	})
}}
