package bench

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// BenchmarkHungMaster asks about entities of two of three masters, while all answer and while the third hangs, and
// about one of these entities together with one of the third.
func BenchmarkHungMaster(b *testing.B) {
	for b.Loop() {
		hungMaster(b)
	}
}

func hungMaster(b *testing.B) {
	const shards, entities, rounds = 24, 200, 1000
	cluster := redistest.NewCluster(b)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, ReadTimeout: 2 * time.Second})
	defer client.Close()
	r := defined.Registry(b, hotDefinitions)
	stored := redisstore.New(client, namespace, shards, redisstore.Deadlines(250*time.Millisecond, 2*time.Second))
	if err := stored.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	load := newStream(b, r, stored, 0)
	load.apply(b, 20*entities, neighbour)
	cluster.Nodes[0].Pause()
	var healthy []string
	hung := ""
	for n := range int64(entities) {
		if entity := neighbour(n); unavailable(b, r, stored, load.now, entity) {
			hung = entity
		} else {
			healthy = append(healthy, entity)
		}
	}
	cluster.Nodes[0].Resume()
	if hung == "" || len(healthy) == 0 {
		b.Fatalf("%d of %d entities are of masters that answer", len(healthy), entities)
	}
	testkit.Eventually(b, time.Minute, "the master that is back is asked again", func() (bool, string) {
		return !unavailable(b, r, stored, load.now, hung), hung
	})
	measure := func(what string) {
		var asked, together []time.Duration
		for i := range rounds {
			began := time.Now()
			if unavailable(b, r, stored, load.now, healthy[i%len(healthy)]) {
				b.Fatal("an entity of a master that answers is unavailable")
			}
			asked = append(asked, time.Since(began))
			began = time.Now()
			unavailable(b, r, stored, load.now, healthy[i%len(healthy)], hung)
			together = append(together, time.Since(began))
		}
		report(b, what+"/question", asked)
		report(b, what+"/both", together)
	}
	measure("well")
	cluster.Nodes[0].Pause()
	began := time.Now()
	unavailable(b, r, stored, load.now, hung)
	b.ReportMetric(time.Since(began).Seconds()*1000, "first-ms")
	measure("hung")
	cluster.Nodes[0].Resume()
}

// report reports the median and the 99th percentile in milliseconds.
func report(b *testing.B, what string, times []time.Duration) {
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2].Seconds()*1000, "p50-ms/"+what)
	b.ReportMetric(times[len(times)*99/100].Seconds()*1000, "p99-ms/"+what)
}

// unavailable asks for all features of entities except those that need a member, and reports
// whether any is unavailable.
func unavailable(b *testing.B, r *features.Registry, stored store.Store, now int64, entities ...string) (away bool) {
	var reading query.Reading
	reading.Reset(now)
	asked := 0
	for _, entity := range entities {
		for _, f := range r.Features {
			if f.Membership() != aggregate.MembersRequired {
				reading.Want(f, entity, now)
				asked++
			}
		}
	}
	if err := reading.Read(b.Context(), stored); err != nil {
		b.Fatal(err)
	}
	for range asked {
		var a query.Answer
		reading.Next(&a)
		away = away || a.Status == query.Unavailable
	}
	return away
}
