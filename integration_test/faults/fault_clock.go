package main

import (
	"math/rand/v2"
	"strings"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// The clock of a server is set ahead for some seconds, while events are written: keys expire early. A processor sees that
// begin or end. What may be missing is filled again.
var setClock = &fault{name: "clock set ahead", lane: interludeLane, topologies: onRedis, happen: func(r *round, random *rand.Rand) {
	r.redis.AwaitServing(r.kit)
	n := r.redis.MasterOf(keyspace.ProgressKey(keyspace.ShardTag(r.namespace(), random.IntN(r.scenario.Shards), r.scenario.Shards)))
	ahead := []time.Duration{3 * time.Hour, 30 * time.Hour, 5 * 24 * time.Hour, 40 * 24 * time.Hour}[random.IntN(4)]
	r.killAllOrNone(random)
	n.SetClock(ahead + time.Duration(random.Int64N(int64(ahead))))
	r.writer.more(1 + random.IntN(600))
	for _, p := range r.processors {
		p.Start()
	}
	r.awaitApplied() // a processor that was killed has begun to look at the server
	pause(random, 2*time.Second, 6*time.Second)
	n.SetClock(0)
	r.awaitLogged("the clock of Redis was set back")
}}

// awaitLogged waits until a processor has written a message.
func (r *round) awaitLogged(message string) {
	testkit.Eventually(r.kit, time.Minute, "a processor to say that "+message, func() (bool, string) {
		for _, p := range r.processors {
			if strings.Contains(p.Log(), message) {
				return true, ""
			}
		}
		return false, r.tails()
	})
}
