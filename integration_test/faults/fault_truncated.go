package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// The broker dies and loses the ends of its logs. Lost records that were applied stay in the state,
// and the records written in their place count as well.
var truncateLog = &fault{name: "log truncated", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	before := map[state.Partition]int64{}
	for _, p := range r.partitions() {
		before[p] = r.kafka.LogSize(p.Topic, p.ID)
	}
	// The tail holds no transactions: if their end markers were lost, the brokers would wait for
	// them forever.
	r.writer.more(50 + random.IntN(200))
	r.awaitApplied()
	r.ledger.take()
	r.killAllOrNone(random)
	r.kafka.Kill()
	for _, p := range r.partitions() {
		if size := r.kafka.LogSize(p.Topic, p.ID); size > before[p] && random.IntN(3) > 0 {
			r.kafka.TruncateLog(p.Topic, p.ID, before[p]+random.Int64N(size-before[p]))
		}
	}
	r.kafka.Start()
	testkit.Eventually(r.kit, time.Minute, "the ends of the truncated logs", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		ends, err := r.kafka.Ends(ctx, r.partitions())
		if err != nil {
			return false, err.Error()
		}
		for p, end := range ends {
			r.ledger.diverge(p, end)
		}
		return true, ""
	})
}}
