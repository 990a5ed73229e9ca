package bench

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/pipeline/busiest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

// BenchmarkPath processes records from fetched bytes to the arguments of script calls: everything
// the consumer's process does except the network.
func BenchmarkPath(b *testing.B) {
	broker := kafkatest.Embedded(b, map[string]int{transactions: 1, logins: 1})
	feed := newFeed(b, broker.ListenAddrs(), population(20_000))
	feed.skew.onePartition = 1
	feed.fill(b, 20_000, time.Hour)
	fetched := fetchAll(b, broker.ListenAddrs())
	client := redis.NewClient(&redis.Options{Addr: redistest.Embedded(b).Addr()})
	defer client.Close()
	p := newPath(b, client)
	if err := p.store.Create(b.Context()); err != nil { // the writer hashes by the namespace's secret
		b.Fatal(err)
	}
	client.AddHook(applied{})
	var decoder fetch.Decoder
	var rec fetch.Record
	process := func(data *fetch.PartitionData) (n int) {
		for decoder.Reset(data); ; n++ {
			ok, err := decoder.Next(&rec)
			if err != nil {
				b.Fatal(err)
			}
			if !ok {
				return n
			}
			p.add(b, data.Topic, rec.Offset, rec.Timestamp, rec.Value)
		}
	}
	n, began := 0, cpuSeconds()
	b.ReportAllocs()
	for b.Loop() {
		for _, data := range fetched {
			copy(p.progress[data.Topic], testkit.FirstPlacement(state.Partition{}, p.store.Shards(), 0).To)
			n += process(data)
		}
		p.flush(b)
	}
	b.ReportMetric((cpuSeconds()-began)/float64(n)*1e9, "cpu-ns/record")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/record")
}

// BenchmarkMap decodes and maps values of records.
func BenchmarkMap(b *testing.B) {
	p := newPath(b, nil)
	values, topics := make([][]byte, 1000), make([]string, 1000)
	random := rand.New(rand.NewPCG(1, 2))
	now := time.Now().UnixMilli()
	for i := range values {
		e := newEvent(random, i, population(len(values)))
		values[i], topics[i] = e.appendJSON(nil, now), e.topic()
	}
	b.ReportAllocs()
	n, began := 0, cpuSeconds()
	for b.Loop() {
		if n%len(values) == 0 {
			p.batch.Reset()
			p.batch.Ranges = append(p.batch.Ranges, state.PartitionRange{})
		}
		p.mapOne(b, topics[n%len(values)], int64(n), now, values[n%len(values)])
		n++
	}
	b.ReportMetric((cpuSeconds()-began)/float64(n)*1e9, "cpu-ns/record")
}

// BenchmarkApply writes 100,000 events of a month to a real Redis and reports their cost there: in
// the batches of full load and in small ones.
func BenchmarkApply(b *testing.B) {
	for _, size := range []int{config.Default().Processor.Batch.MaxEvents, 100} {
		b.Run(fmt.Sprintf("events=%d", size), func(b *testing.B) {
			for b.Loop() {
				apply(b, size, 100_000, redistest.Options{})
			}
		})
	}
}

// BenchmarkAOF applies events to servers with an append-only file, which they rewrite as it grows, under the settings
// that determine what that costs.
func BenchmarkAOF(b *testing.B) {
	for _, settings := range []map[string]string{
		{"appendonly": "no"}, {}, {"rdbcompression": "no"}, {"auto-aof-rewrite-percentage": "400"},
		{"auto-aof-rewrite-min-size": "1gb"}, {"no-appendfsync-on-rewrite": "yes"}, {"aof-rewrite-incremental-fsync": "no"},
	} {
		name, all := "as it comes", map[string]string{"auto-aof-rewrite-percentage": "100"}
		for setting, value := range settings {
			name = setting + "=" + value
		}
		maps.Copy(all, settings)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				apply(b, config.Default().Processor.Batch.MaxEvents, *events, redistest.Options{AOF: true, Config: all})
			}
		})
	}
}

func apply(b *testing.B, size, n int, options redistest.Options) {
	const month = 30 * 24 * time.Hour
	server := redistest.New(b, options)
	s := side{redis: server.Client(b)}
	p := newPath(b, server.Client(b))
	p.size = size
	if err := p.store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	for _, topic := range []string{transactions, logins} {
		if _, err := p.store.Place(b.Context(), testkit.FirstPlacement(state.Partition{Topic: topic}, p.store.Shards(), 0)); err != nil {
			b.Fatal(err)
		}
	}
	seen, random, offsets := entities{}, rand.New(rand.NewPCG(1, 2)), map[string]int64{}
	memory := s.info(b, "memory", "used_memory")
	start := time.Now().Add(-month)
	for i := range n {
		e := newEvent(random, i, population(n))
		at := start.Add(month / time.Duration(n) * time.Duration(i))
		seen.add(&e, at)
		p.add(b, e.topic(), offsets[e.topic()], at.UnixMilli(), e.appendJSON(nil, at.UnixMilli()))
		offsets[e.topic()]++
	}
	p.flush(b)
	testkit.Eventually(b, time.Minute, "the end of a rewrite", func() (bool, string) {
		return s.info(b, "persistence", "aof_rewrite_in_progress", "aof_rewrite_scheduled") == 0, "it goes on"
	})
	cpu, children := s.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), s.info(b, "cpu", "used_cpu_user_children", "used_cpu_sys_children")
	age(b, s.redis, seen, start.Add(month))
	memory = s.info(b, "memory", "used_memory") - memory
	b.ReportMetric(cpu/float64(n)*1e6, "redis-µs/event")
	if options.AOF {
		b.ReportMetric(children/float64(n)*1e6, "rewriting-µs/event")
	}
	b.ReportMetric(memory/float64(len(seen)), "redis-B/entity")
}

// path processes records into a store, in batches of the default size.
type path struct {
	mapper   *features.Mapper
	store    *redisstore.Store
	writer   store.Writer
	busiest  *busiest.Counter
	batch    state.Batch
	events   int
	size     int
	progress map[string][]state.Position // by topic
}

func newPath(b *testing.B, client redis.UniversalClient) *path {
	registry, err := definition.Load("../config/features")
	if err != nil {
		b.Fatal(err)
	}
	cfg := config.Default()
	p := &path{
		mapper: registry.NewMapper(), size: cfg.Processor.Batch.MaxEvents,
		busiest: busiest.New(time.Now),
		store:   redisstore.New(client, namespace, cfg.Shards), progress: map[string][]state.Position{},
	}
	p.writer = p.store.NewWriter()
	for _, topic := range registry.Topics() {
		p.progress[topic] = testkit.FirstPlacement(state.Partition{}, cfg.Shards, 0).To
	}
	return p
}

func (p *path) add(b *testing.B, topic string, offset, at int64, value []byte) {
	p.mapOne(b, topic, offset, at, value)
	if p.events++; p.events == p.size {
		p.flush(b)
	}
}

func (p *path) mapOne(b *testing.B, topic string, offset, at int64, value []byte) {
	rangeIndex := 0
	for ; rangeIndex < len(p.batch.Ranges) && p.batch.Ranges[rangeIndex].Partition.Topic != topic; rangeIndex++ {
	}
	if rangeIndex == len(p.batch.Ranges) {
		p.batch.Ranges = append(p.batch.Ranges, state.PartitionRange{
			Partition: state.Partition{Topic: topic}, Progress: p.progress[topic],
		})
	}
	p.batch.Ranges[rangeIndex].To = offset + 1
	_, err := p.mapper.Map(&record.Record{
		Partition: p.batch.Ranges[rangeIndex].Partition, Offset: offset, Timestamp: at, Value: value,
	}, rangeIndex, &p.batch)
	if err != nil {
		b.Fatal(err)
	}
}

func (p *path) flush(b *testing.B) {
	if err := p.writer.Apply(b.Context(), &p.batch); err != nil {
		b.Fatal(err)
	}
	p.busiest.Count(&p.batch)
	for _, r := range p.batch.Ranges {
		if r.Behind {
			b.Fatalf("%s was not applied", r.Partition.Topic)
		}
	}
	p.batch.Reset()
	p.events = 0
}

// applied answers the pipelines of scripts in place of Redis.
type applied struct{}

func (applied) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (applied) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

var appliedReply = []any{int64(0), ""}

func (applied) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if _, script := cmds[0].(*redis.Cmd); !script { // the layout is read
			return next(ctx, cmds)
		}
		for _, c := range cmds {
			c.(*redis.Cmd).SetVal(appliedReply)
		}
		return nil
	}
}

// fetchAll fetches everything in the only partitions of the topics.
func fetchAll(b *testing.B, brokers []string) (all []*fetch.PartitionData) {
	transport := &kafka.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	poller := fetch.NewPoller(fetch.PollerConfig{
		Transport: transport, Bootstrap: kafka.TCP(brokers...), PartitionMaxBytes: 16 << 20,
	})
	b.Cleanup(poller.Close)
	for _, topic := range []string{transactions, logins} {
		poller.Add(topic, 0, 0)
		p, err := poller.Poll(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		poller.Remove(topic, 0)
		all = append(all, p)
	}
	return all
}
