package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
)

// The broker dies and loses the ends of its logs. Lost records that were applied stay in the state,
// and the records written in their place count as well. Lost rows of tables and lists count no more.
var truncateLog = &fault{name: "log truncated", lane: interludeLane, happen: func(r *round, random *rand.Rand) {
	before, logs := map[state.Partition]int64{}, slices.Concat(r.partitions(), r.rowPartitions())
	for _, p := range logs {
		before[p] = r.kafka.LogSize(p.Topic, p.ID)
	}
	// The tail holds no transactions: if their end markers were lost, the brokers would wait for
	// them forever.
	r.writer.more(50 + random.IntN(200))
	r.awaitApplied()
	r.ledger.take()
	r.killAllOrNone(random)
	r.kafka.Kill()
	for _, p := range logs {
		if size := r.kafka.LogSize(p.Topic, p.ID); size > before[p] && random.IntN(3) > 0 {
			r.kafka.TruncateLog(p.Topic, p.ID, before[p]+random.Int64N(size-before[p]))
		}
	}
	r.kafka.Start()
	testkit.Eventually(r.kit, time.Minute, "the ends of the truncated logs", func() (bool, string) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		ends, err := r.kafka.Ends(ctx, logs)
		if err != nil {
			return false, err.Error()
		}
		for p, end := range ends {
			r.ledger.diverge(p, end)
		}
		return true, ""
	})
}}
