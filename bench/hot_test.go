package bench

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

const hotDefinitions = `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {device: string, user: string, agent: string, amount: {type: decimal, scale: 2}}
features:
  users_30d: COUNT_DISTINCT(30d, pay, device, user)
  users_1h: COUNT_DISTINCT(1h, pay, device, user)
  list: SET(1d, pay, device, user)
  approx: APPROX_COUNT_DISTINCT(30d, pay, device, user)
  agents: LAST_K(7d, pay, agent, device, k=5)
  top: TOP_K(30d, pay, user, device, k=5)
  met: SEEN(30d, pay, device, user)
  count: COUNT(7d, pay, device)
  sum: SUM(7d, pay, amount, device)
`

// BenchmarkHotEntity applies 200,000 events with as many distinct values to one entity, and reports
// the size of its key and the cost of a question about it.
func BenchmarkHotEntity(b *testing.B) {
	for b.Loop() {
		hot(b, 200_000)
	}
}

func hot(b *testing.B, events int) {
	server := redistest.New(b, redistest.Options{})
	client := server.Client(b)
	s := side{redis: client}
	r := defined.Registry(b, hotDefinitions)
	stored := redisstore.New(client, namespace, 1)
	if err := stored.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	load := newStream(b, r, stored, 0)
	greatest, now := int64(0), load.now
	in, out := s.info(b, "stats", "total_net_input_bytes"), s.info(b, "stats", "total_net_output_bytes")
	for load.offset < int64(events) {
		load.apply(b, 2000, hotDevice)
		greatest = max(greatest, longestKey(b, client))
	}
	n := float64(events)
	b.ReportMetric((s.info(b, "stats", "total_net_input_bytes")-in)/n, "B-in/event")
	b.ReportMetric((s.info(b, "stats", "total_net_output_bytes")-out)/n, "B-out/event")
	b.ReportMetric(float64(greatest)/1024, "longest-KiB")
	const asked = 50
	cpu, redisCPU := cpuSeconds(), s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")
	for range asked {
		askOne(b, r, stored, "d", now)
	}
	b.ReportMetric((cpuSeconds()-cpu)/asked*1000, "cpu-ms/question")
	b.ReportMetric((s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")-redisCPU)/asked*1000, "redis-ms/question")
}

// stream applies events of a partition of its own.
type stream struct {
	mapper    *features.Mapper
	writer    store.Writer
	partition state.Partition
	progress  []state.Position
	offset    int64
	now       int64 // of all records, in ms
}

func newStream(b *testing.B, r *features.Registry, stored store.Store, id int32) *stream {
	partition := state.Partition{Topic: "pay", ID: id}
	begin := testkit.FirstPlacement(partition, stored.Shards(), 0)
	if _, err := stored.Place(b.Context(), begin); err != nil {
		b.Fatal(err)
	}
	return &stream{r.NewMapper(), stored.NewWriter(), partition, begin.To, 0, time.Now().UnixMilli()}
}

// apply applies a batch of n events, each with its own user and agent.
func (s *stream) apply(b *testing.B, n int, device func(int64) string) {
	batch := &state.Batch{Ranges: []state.PartitionRange{{Partition: s.partition, Progress: s.progress}}}
	for range n {
		rec := record.Record{Partition: s.partition, Offset: s.offset, Timestamp: s.now, Value: fmt.Appendf(nil,
			`{"t":%d,"device":%q,"user":"u%08d","agent":"%s%d","amount":1.5}`, s.now-s.offset%1000, device(s.offset), s.offset, agent, s.offset)}
		if _, err := s.mapper.Map(&rec, 0, batch); err != nil {
			b.Error(err)
			return
		}
		s.offset++
	}
	batch.Ranges[0].To = s.offset
	if err := s.writer.Apply(b.Context(), batch); err != nil {
		b.Error(err)
	}
}

// agent is a long prefix of values.
var agent = strings.Repeat("a", 300)

func hotDevice(int64) string { return "d" }

func evenDevice(n int64) string { return fmt.Sprintf("even%d", n%10_000) }

func neighbour(n int64) string { return fmt.Sprintf("near%d", n%200) }

// BenchmarkNeighbours asks about other entities in a hot entity's shard and applies their events.
// Meanwhile as many events a second go to the hot entity, or evenly to 10,000 entities.
func BenchmarkNeighbours(b *testing.B) {
	for name, device := range map[string]func(int64) string{"hot": hotDevice, "even": evenDevice} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				neighbours(b, device)
			}
		})
	}
}

// The load beside the neighbours is 10,000 events a second, in batches like those of a processor. Without a fixed rate
// the two kinds of load would differ, and not be comparable.
const (
	loadBatch = 500
	loadEvery = 50 * time.Millisecond
)

func neighbours(b *testing.B, device func(int64) string) {
	const rounds = 2000
	r := defined.Registry(b, hotDefinitions)
	stored := redisstore.New(redistest.New(b, redistest.Options{}).Client(b), namespace, 1)
	if err := stored.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	load, near := newStream(b, r, stored, 0), newStream(b, r, stored, 1)
	for load.offset < 60_000 { // until the hot entity has reached its full size
		load.apply(b, 2000, device)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	began, before := time.Now(), load.offset
	go func() {
		defer close(stopped)
		tick := time.NewTicker(loadEvery)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				load.apply(b, loadBatch, device)
			}
		}
	}()
	var asked, updated []time.Duration
	for i := range int64(rounds) {
		began := time.Now()
		near.apply(b, 20, neighbour)
		updated = append(updated, time.Since(began))
		began = time.Now()
		askOne(b, r, stored, neighbour(i), near.now)
		asked = append(asked, time.Since(began))
	}
	close(stop)
	<-stopped
	b.ReportMetric(float64(load.offset-before)/time.Since(began).Seconds(), "load-events/s")
	for name, times := range map[string][]time.Duration{"question": asked, "update": updated} {
		report(b, name, times)
	}
}

// askOne asks for all features of an entity except those that need a member.
func askOne(b *testing.B, r *features.Registry, stored store.Store, entity string, now int64) {
	var reading query.Reading
	reading.Reset(now)
	var asked []*features.Feature
	for _, f := range r.Features {
		if f.Membership() != aggregate.MembersRequired {
			reading.Want(f, entity, now)
			asked = append(asked, f)
		}
	}
	if err := reading.Read(context.Background(), stored); err != nil {
		b.Fatal(err)
	}
	for range asked {
		var a query.Answer
		reading.Next(&a)
	}
}

// longestKey returns the length of the longest key.
func longestKey(b *testing.B, client redis.UniversalClient) (most int64) {
	keys, err := client.Keys(b.Context(), "*:d").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys {
		most = max(most, client.StrLen(b.Context(), key).Val())
	}
	return most
}
