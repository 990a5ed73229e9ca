package integration_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/generate"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Each of three masters fails and goes back in time with its shards, independently of the others.
func TestExactlyOnceOnCluster(t *testing.T) {
	t.Parallel()
	events := fewer(60_000)
	cluster := redistest.NewCluster(t)
	s := newScene(t, cluster.Client(t), "--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","))
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	var old redistest.Copy
	s.flow(generate.New(seed, stream(200)), events,
		fault{"a processor is killed and replaced", func() {
			s.kill(first)
			first = s.start("processor")
		}},
		fault{"a copy of one master is taken", func() { old = cluster.Nodes[1].SaveCopy() }},
		fault{"a master is killed and started from its AOF", func() {
			s.kill(cluster.Nodes[0])
			cluster.Nodes[0].Start()
			cluster.WaitOK(t)
		}},
		fault{"one master is put back to the copy", func() {
			awaitShared(t, first, second)
			before := s.rewinds()
			s.restore(cluster.Nodes[1], old)
			cluster.WaitOK(t)
			s.awaitRewind(before)
		}},
		fault{"a master and a processor are killed and started", func() {
			s.kill(cluster.Nodes[2], second)
			cluster.Nodes[2].Start()
			second = s.start("processor")
		}},
	)
	s.finish(api, events)
}

// longestStall bounds the time without progress while slots move: a lagging partition is read again
// after a backoff of up to 5 s, and the machine may be busy.
const longestStall = time.Minute

// Slots move between masters and back, key by key, while events flow. Shards whose slot is moving
// lag and catch up, no event is lost or counted twice, and nothing stalls for long.
func TestSlotsMoveWhileEventsFlow(t *testing.T) {
	t.Parallel()
	events := fewer(60_000)
	cluster := redistest.NewCluster(t)
	s := newScene(t, cluster.Client(t), "--redis.mode", "cluster", "--redis.addresses", strings.Join(cluster.Addrs(), ","))
	api := s.start("api")
	first, second := s.start("processor"), s.start("processor")
	random := rand.New(rand.NewPCG(seed, 3))
	moved := 0
	move := fault{"slots move, and back", func() {
		awaitShared(t, first, second)
		for range 4 {
			tag := keyspace.ShardTag(s.group, random.IntN(shards), shards)
			slot := int(cluster.Client(t).ClusterKeySlot(ctx, tag).Val())
			from := redistest.SlotOwner(ctx, tag, cluster.Nodes...)
			to := cluster.Nodes[random.IntN(len(cluster.Nodes))]
			if from == nil || to == from {
				continue
			}
			for _, way := range [][2]*redistest.Server{{from, to}, {to, from}, {from, to}} {
				if err := redistest.MoveSlot(ctx, slot, way[0], way[1], cluster.Nodes...); err != nil {
					t.Fatal(err)
				}
				moved++
			}
		}
	}}
	stalled, stop := s.watchStalls()
	s.flow(generate.New(seed, stream(200)), events, move, move, move, move, move)
	s.awaitApplied()
	stop()
	if longest := <-stalled; longest > longestStall || moved < 20 {
		t.Errorf("nothing was applied for up to %v while slots moved %d times", longest, moved)
	} else {
		t.Logf("%d times a slot was moved; nothing was applied for %v at the most", moved, longest.Round(time.Millisecond))
	}
	s.finish(api, events)
}

func sumOf(ends map[state.Partition]int64) (sum int64) {
	for _, end := range ends {
		sum += end
	}
	return sum
}

// watchStalls measures the longest time in which no shard makes progress in any partition, until it
// is stopped.
func (s *scene) watchStalls() (longest <-chan time.Duration, stop func()) {
	result, stopped := make(chan time.Duration, 1), make(chan struct{})
	go func() {
		ticker := time.NewTicker(50 * time.Millisecond)
		defer ticker.Stop()
		var most int64
		var longest time.Duration
		since := time.Now()
		for {
			select {
			case <-ticker.C:
			case <-stopped:
				result <- longest
				return
			}
			written, err := ends(s.kafka)
			applied, err2 := s.applied()
			switch {
			case err != nil || err2 != nil:
			case applied > most:
				if most > 0 {
					longest = max(longest, time.Since(since))
				}
				most, since = applied, time.Now()
			case applied >= sumOf(written):
				since = time.Now() // nothing is left to apply
			}
		}
	}()
	return result, func() { close(stopped) }
}
