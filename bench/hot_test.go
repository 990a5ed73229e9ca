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
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
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

// BenchmarkHotEntity gives one entity 200,000 events of as many values, and reports
// what its key and a question about it come to.
func BenchmarkHotEntity(b *testing.B) {
	for b.Loop() {
		hot(b, 200_000)
	}
}

func hot(b *testing.B, events int) {
	server := testkit.NewRedis(b, testkit.RedisOptions{})
	client := server.Client(b)
	s := side{redis: client}
	r, err := features.Parse("hot.yaml", []byte(hotDefinitions))
	if err != nil {
		b.Fatal(err)
	}
	stored := redisstore.New(client, namespace, 1)
	partition := state.Partition{Topic: "pay"}
	if err := stored.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	begin := state.Begin(partition, 1, 0)
	if _, err := stored.Place(b.Context(), begin); err != nil {
		b.Fatal(err)
	}
	now, agent := time.Now().UnixMilli(), strings.Repeat("a", 300)
	mapper, writer, progress, greatest := r.NewMapper(), stored.NewWriter(), begin.To, int64(0)
	in, out := s.info(b, "stats", "total_net_input_bytes"), s.info(b, "stats", "total_net_output_bytes")
	for offset := int64(0); offset < int64(events); {
		batch := &state.Batch{Sources: []state.PartitionRange{{Partition: partition, Progress: progress}}}
		for range 2000 {
			rec := record.Record{Partition: partition, Offset: offset, Timestamp: now, Value: fmt.Appendf(nil,
				`{"t":%d,"device":"d","user":"u%08d","agent":"%s%d","amount":1.5}`, now-offset%1000, offset, agent, offset)}
			if _, err := mapper.Map(&rec, 0, batch); err != nil {
				b.Fatal(err)
			}
			offset++
		}
		batch.Sources[0].To = offset
		if err := writer.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
		greatest = max(greatest, longestKey(b, client))
	}
	n := float64(events)
	b.ReportMetric((s.info(b, "stats", "total_net_input_bytes")-in)/n, "B-in/event")
	b.ReportMetric((s.info(b, "stats", "total_net_output_bytes")-out)/n, "B-out/event")
	b.ReportMetric(float64(greatest)/1024, "longest-KiB")
	const asked = 50
	cpu, redisCPU := cpuSeconds(), s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")
	for range asked {
		var reading features.Reading
		reading.Reset(now)
		for _, f := range r.Features {
			if f.Membership() != aggregate.MembersNeeded {
				reading.Want(f, "d", now)
			}
		}
		if err := reading.Read(context.Background(), stored); err != nil {
			b.Fatal(err)
		}
		for range len(r.Features) - 1 {
			var a features.Answer
			reading.Next(&a)
		}
	}
	b.ReportMetric((cpuSeconds()-cpu)/asked*1000, "cpu-ms/question")
	b.ReportMetric((s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")-redisCPU)/asked*1000, "redis-ms/question")
}

// longestKey is the length of the longest key.
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
