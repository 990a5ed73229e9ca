package bench

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

var maxEntities = flag.Int("entities", 1_000_000, "the greatest number of entities that BenchmarkScale has in one Redis")

// size is the dimensions of a load. BenchmarkScale varies one of them at a time.
type size struct {
	features, entities, shards, masters int
	batch                               int // events
}

var ordinary = size{features: 100, entities: 100_000, shards: config.Default().Shards, masters: 1, batch: 2000}

// BenchmarkScale measures what an event and a question cost the process and Redis, for growing numbers of definitions,
// entities, shards and masters. A question is about 20 features of 3 entities.
func BenchmarkScale(b *testing.B) {
	vary := func(what string, numbers []int, set func(*size, int)) {
		for _, n := range numbers {
			s := ordinary
			set(&s, n)
			b.Run(fmt.Sprintf("%s=%d", what, n), func(b *testing.B) {
				for b.Loop() {
					s.measure(b)
				}
			})
		}
	}
	vary("features", []int{10, 100, 1000}, func(s *size, n int) { s.features = n })
	var entities []int
	for n := 10_000; n <= *maxEntities; n *= 10 {
		entities = append(entities, n)
	}
	vary("entities", entities, func(s *size, n int) { s.entities = n })
	vary("shards", []int{4, 16, 64, 512}, func(s *size, n int) { s.shards = n })
	vary("masters", []int{3, 6}, func(s *size, n int) { s.masters, s.shards = n, 64 })
	vary("batch", []int{20, 200, 20_000}, func(s *size, n int) { s.batch = n })
}

const scaleStreams = 10

// definitions returns features over ten streams, the same number over each: functions, windows and entities alternate,
// and filters give each its own state.
func (s size) definitions() string {
	var d strings.Builder
	d.WriteString("streams:\n")
	for i := range scaleStreams {
		fmt.Fprintf(&d, "  s%d: {topic: s%[1]d, timestamp: t, fields: {user: string, device: string, card: string, peer: string, n: int}}\n", i)
	}
	d.WriteString("features:\n")
	functions := []string{"COUNT(%s, s%d, %s%s)", "SUM(%s, s%d, n, %s%s)", "MAX(%s, s%d, n, %s%s)", "APPROX_COUNT_DISTINCT(%s, s%d, %s, peer%s)"}
	windows, by := []string{"1h", "1d", "30d"}, []string{"user", "device", "card"}
	for i := range s.features {
		n := i / scaleStreams // among those of its stream
		filter := ""
		if n >= len(functions) {
			filter = fmt.Sprintf(", where='n %% 10 != %d'", n%10)
		}
		fmt.Fprintf(&d, "  f%d: ", i)
		fmt.Fprintf(&d, functions[n%len(functions)], windows[n/2%len(windows)], i%scaleStreams, by[n%len(by)], filter)
		d.WriteByte('\n')
	}
	return d.String()
}

// scaled is a load under way.
type scaled struct {
	size
	registry *features.Registry
	mapper   *features.Mapper
	store    *redisstore.Store
	writer   store.Writer
	masters  []*redis.Client
	random   *rand.Rand
	progress [][]state.Position // by stream
	offsets  []int64            // by stream
	now      int64              // milliseconds
}

func (s size) measure(b *testing.B) {
	l := s.start(b)
	for first := 0; first < s.entities/3; first += s.batch { // each entity once
		l.apply(b, min(s.batch, s.entities/3-first), func(i int) [3]int { return [3]int{first + i, first + i, first + i} })
	}
	anyone := func(int) (drawn [3]int) {
		for i := range drawn {
			drawn[i] = l.random.IntN(s.entities / 3)
		}
		return drawn
	}
	l.load(b, s.entities/3, anyone) // Redis has then enlarged its tables
	l.rewriteAOF(b, true)
	const events = 120_000
	own, used := l.load(b, events, anyone)
	b.ReportMetric(own, "µs/event")
	b.ReportMetric(sum(used), "redis-µs/event")
	b.ReportMetric(sum(l.info(b, "memory", "used_memory"))/float64(s.entities), "redis-B/entity")
	if s.entities >= 1_000_000 { // with fewer, the rewrite ends before it can be measured
		l.rewriteAOF(b, false)
		_, used := l.load(b, 30_000, anyone)
		b.ReportMetric(sum(used), "redis-µs/event-while-rewriting")
		l.rewriteAOF(b, true)
	}
	if s.masters > 1 {
		b.ReportMetric(spread(used), "cpu-max/mean")
		b.ReportMetric(spread(keysOf(b, l.masters)), "keys-max/mean")
		b.ReportMetric(spread(l.info(b, "memory", "used_memory")), "bytes-max/mean")
		b.ReportMetric(spread(l.info(b, "stats", "total_commands_processed")), "calls-max/mean")
	}
	const questions = 2000
	for i := range questions { // after a rewrite, a page costs more when it is first read
		l.ask(b, anyone(i))
	}
	before, cpu := l.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), cpuSeconds()
	for i := range questions {
		l.ask(b, anyone(i))
	}
	b.ReportMetric((cpuSeconds()-cpu)/questions*1e6, "µs/question")
	b.ReportMetric(sum(subtract(l.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), before))/questions*1e6, "redis-µs/question")
}

// load applies events, and returns the microseconds of CPU that each took this process, and the masters. Their
// children, who rewrite the append-only files, are not included.
func (l *scaled) load(b *testing.B, events int, who func(int) [3]int) (own float64, masters []float64) {
	before := l.info(b, "cpu", "used_cpu_user", "used_cpu_sys")
	applied := 0
	for ; applied < events; applied += l.batch {
		own += l.apply(b, l.batch, who)
	}
	masters = subtract(l.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), before)
	for i := range masters {
		masters[i] *= 1e6 / float64(applied)
	}
	return own * 1e6 / float64(applied), masters
}

// rewriteAOF makes the masters rewrite their append-only files, and waits for the end if so wanted. The tests' servers
// rewrite only on request: otherwise rewrites would dominate the result, since they cost most where memory is greatest.
func (l *scaled) rewriteAOF(b *testing.B, wait bool) {
	for _, m := range l.masters {
		s := side{redis: m}
		done := func() (bool, string) {
			return s.info(b, "persistence", "aof_rewrite_in_progress", "aof_rewrite_scheduled") == 0, "it goes on"
		}
		testkit.Eventually(b, 5*time.Minute, "the end of a rewrite", done)
		if err := m.BgRewriteAOF(b.Context()).Err(); err != nil {
			b.Fatal(err)
		}
		if wait {
			testkit.Eventually(b, 5*time.Minute, "the end of a rewrite", done)
		}
	}
}

func (s size) start(b *testing.B) *scaled {
	l := &scaled{size: s, random: rand.New(rand.NewPCG(1, 2)), now: time.Now().UnixMilli(), offsets: make([]int64, scaleStreams)}
	l.registry = defined.Registry(b, s.definitions())
	var client redis.UniversalClient
	if s.masters > 1 {
		cluster := redistest.NewClusterOf(b, s.masters)
		client = cluster.Client(b)
		for _, node := range cluster.Nodes {
			l.masters = append(l.masters, node.Client(b))
		}
	} else {
		only := redistest.New(b, redistest.Options{AOF: true}).Client(b)
		client, l.masters = only, []*redis.Client{only}
	}
	l.store = redisstore.New(client, namespace, s.shards)
	if err := l.store.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	l.mapper, l.writer = l.registry.NewMapper(), l.store.NewWriter()
	for i := range scaleStreams {
		begin := testkit.FirstPlacement(state.Partition{Topic: fmt.Sprintf("s%d", i)}, s.shards, 0)
		if _, err := l.store.Place(b.Context(), begin); err != nil {
			b.Fatal(err)
		}
		l.progress = append(l.progress, begin.To)
	}
	return l
}

// apply applies a batch of events of the streams in turn, of a user, a device and a card each, and returns the CPU seconds
// that mapping and applying took this process.
func (l *scaled) apply(b *testing.B, n int, who func(i int) [3]int) float64 {
	batch := state.Batch{}
	values := make([][]byte, n)
	for i := range values {
		e := who(i)
		values[i] = fmt.Appendf(nil, `{"t":%d,"user":"u%08d","device":"d%08d","card":"c%08d","peer":"p%d","n":%d}`,
			l.now-l.random.Int64N(3_600_000), e[0], e[1], e[2], l.random.IntN(1000), l.random.IntN(100))
	}
	for i, progress := range l.progress {
		batch.Ranges = append(batch.Ranges, state.PartitionRange{Partition: state.Partition{Topic: fmt.Sprintf("s%d", i)}, Progress: progress})
	}
	cpu := cpuSeconds()
	for i, value := range values {
		at := i % scaleStreams
		r := record.Record{Partition: batch.Ranges[at].Partition, Offset: l.offsets[at], Timestamp: l.now, Value: value}
		if _, err := l.mapper.Map(&r, at, &batch); err != nil {
			b.Fatal(err)
		}
		l.offsets[at]++
		batch.Ranges[at].To = l.offsets[at]
	}
	if err := l.writer.Apply(b.Context(), &batch); err != nil {
		b.Fatal(err)
	}
	cpu = cpuSeconds() - cpu
	for i, r := range batch.Ranges {
		if r.Behind {
			b.Fatalf("%s was not applied", r.Partition.Topic)
		}
		l.progress[i] = r.Progress
	}
	return cpu
}

// ask asks for 20 features, of a user, a device and a card.
func (l *scaled) ask(b *testing.B, who [3]int) {
	var reading query.Reading
	reading.Reset(l.now)
	wanted := l.registry.Features[:min(20, len(l.registry.Features))]
	for _, f := range wanted {
		entity := map[string]string{
			"user": fmt.Sprintf("u%08d", who[0]), "device": fmt.Sprintf("d%08d", who[1]), "card": fmt.Sprintf("c%08d", who[2]),
		}[f.By[0]]
		reading.Want(f, entity, l.now)
	}
	if err := reading.Read(b.Context(), l.store); err != nil {
		b.Fatal(err)
	}
	for range wanted {
		var a query.Answer
		reading.Next(&a)
	}
}

func (l *scaled) info(b *testing.B, section string, names ...string) []float64 {
	return infoOf(b, l.masters, section, names...)
}

// infoOf returns the sum of some figures of INFO, by master.
func infoOf(b *testing.B, masters []*redis.Client, section string, names ...string) (list []float64) {
	for _, m := range masters {
		s := side{redis: m}
		list = append(list, s.info(b, section, names...))
	}
	return list
}

func subtract(a, b []float64) (list []float64) {
	for i := range a {
		list = append(list, a[i]-b[i])
	}
	return list
}

func sum(list []float64) (all float64) {
	for _, x := range list {
		all += x
	}
	return all
}

// spread returns the ratio of the greatest to the mean.
func spread(list []float64) (most float64) {
	for _, x := range list {
		most = max(most, x/sum(list)*float64(len(list)))
	}
	return most
}
