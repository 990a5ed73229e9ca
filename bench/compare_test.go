package bench

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/bench/textbook"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	redisstore "github.com/weir-stream/weir/store/redis"
)

var (
	events   = flag.Int("events", 300_000, "events to load for the comparison")
	span     = flag.Duration("span", 30*24*time.Hour, "time over which the loaded events happened, until now")
	steady   = flag.Duration("steady", 20*time.Second, "time at half load")
	profiles = flag.String("profiles", "", "directory for the consumers' CPU profiles")
)

// BenchmarkComparison applies the same events with Weir and with the textbook consumer, one after
// the other, then measures Weir's freshness at half load. Run it once: -benchtime 1x.
func BenchmarkComparison(b *testing.B) {
	for b.Loop() {
		compare(b)
	}
}

func compare(b *testing.B) {
	broker, feed := loadedBroker(b, skew{})

	var sides []side
	for _, name := range []string{"weir", "textbook"} {
		server := redistest.New(b, redistest.Options{})
		s := side{name: name, server: server, redis: server.Client(b), addr: server.Addr()}
		s.load(b, broker.Addrs(), feed)
		sides = append(sides, s)
	}
	checkEqual(b, sides[0].redis, sides[1].redis, feed.users)
	weir, other := sides[0], sides[1]
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\nof %d events, %d entities\tWeir\ttextbook\tratio\t\n", *events, len(feed.entities))
	for i, figure := range weir.figures {
		fmt.Fprintf(table, "%s\t%.5g\t%.5g\t%.3f\t\n", figure.name, figure.value, other.figures[i].value, figure.value/other.figures[i].value)
		b.ReportMetric(figure.value/other.figures[i].value, strings.ReplaceAll(figure.name, " ", "-")+"-ratio")
	}
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
	other.server.Kill() // it would keep looking for expired keys
	live := weir.sustained(b, broker.Addrs(), feed)
	weir.freshness(b, broker.Addrs(), feed, live/2)
	// The speed of a shared machine varies.
	after := weir.sustained(b, broker.Addrs(), feed)
	fmt.Printf("  events a second kept up with: %.0f before, %.0f after\n", live, after)
}

// side is one of the two consumers with its Redis.
type side struct {
	name, addr string
	server     *redistest.Server
	redis      *redis.Client
	figures    []figure
	rate       float64 // events a second
}

type figure struct {
	name  string
	value float64
}

// load runs the consumer over everything in the topics.
func (s *side) load(b *testing.B, brokers []string, feed *feed) {
	cpu, memory := s.info(b, "cpu", "used_cpu_user", "used_cpu_sys"), s.info(b, "memory", "used_memory")
	o := order{Consumer: s.name, Brokers: brokers, Redis: s.addr, Until: int64(feed.produced)}
	if *profiles != "" {
		o.Profile = filepath.Join(*profiles, s.name+".prof")
	}
	found := o.start(b).wait(b)
	cpu = s.info(b, "cpu", "used_cpu_user", "used_cpu_sys") - cpu
	if s.name == "weir" {
		age(b, s.redis, feed.entities, feed.until)
	}
	memory = s.info(b, "memory", "used_memory") - memory
	n := float64(feed.produced)
	s.rate = rate(found.Steps)
	s.figures = []figure{
		{"events a second", s.rate},
		{"CPU s per million events: consumer", found.CPU / n * 1e6},
		{"CPU s per million events: Redis", cpu / n * 1e6},
		{"CPU s per million events: both", (found.CPU + cpu) / n * 1e6},
		{"Redis bytes per entity", memory / float64(len(feed.entities))},
		{"Redis bytes per event", memory / n},
		{"allocations per event", float64(found.Mallocs) / n},
	}
}

// rate returns the number of events applied a second, from the first step on.
func rate(steps []step) float64 {
	next := map[recordID]int64{}
	total := int64(0)
	for i, s := range steps {
		id := recordID{Topic: s.Topic, Partition: s.Partition}
		if i > 0 {
			total += s.Offset - next[id]
		}
		next[id] = s.Offset
	}
	return float64(total) / steps[len(steps)-1].At.Sub(steps[0].At).Seconds()
}

// info returns the sum of some figures of Redis' INFO.
func (s *side) info(b *testing.B, section string, names ...string) (sum float64) {
	text, err := s.redis.Info(b.Context(), section).Result()
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if slices.Contains(names, name) {
			number, err := strconv.ParseFloat(value, 64)
			if err != nil {
				b.Fatalf("INFO %s: %s: %v", section, name, err)
			}
			sum += number
		}
	}
	return sum
}

// checkEqual compares both sides' results for some users, busy and idle ones.
func checkEqual(b *testing.B, weir, other *redis.Client, users int) {
	registry, err := definition.Load("../config/features")
	if err != nil {
		b.Fatal(err)
	}
	state := redisstore.New(weir, namespace, config.Default().Shards)
	f, ok := registry.Feature("user_tx_lifetime")
	if !ok {
		b.Fatal("user_tx_lifetime is not among the shipped features")
	}
	var reading query.Reading
	now, sum := time.Now().UnixMilli(), int64(0)
	for i := 0; i < users; i += max(1, users/200) {
		user := fmt.Sprintf("u%06d", i)
		reading.Reset(now)
		reading.Want(f, user, now)
		if err := reading.Read(b.Context(), state); err != nil {
			b.Fatal(err)
		}
		var answer query.Answer
		reading.Next(&answer)
		got := answer.Value.Num
		want, err := textbook.Transactions(b.Context(), other, user)
		if err != nil {
			b.Fatal(err)
		}
		if got != want {
			b.Fatalf("user_tx_lifetime of %s is %d with Weir and %d with the textbook consumer", user, got, want)
		}
		sum += got
	}
	if sum == 0 {
		b.Fatal("no transactions were counted")
	}
}

// sustained returns the rate, in events a second, at which Weir keeps up with a live producer.
// Producer, broker, Redis and Weir share the machine. At most a few thousand events are in flight.
func (s *side) sustained(b *testing.B, brokers []string, feed *feed) float64 {
	const most = 10_000 // events produced and not yet applied
	n := int(s.rate * steady.Seconds() / 2)
	before := int64(feed.produced)
	feed.users = population(feed.produced + n) // as busy as the earlier users
	events := feed.made(n, time.Now(), *steady)
	consumer := order{Consumer: s.name, Brokers: brokers, Redis: s.addr, Until: before + int64(n)}.start(b)
	<-consumer.started
	start := time.Now()
	feed.stream(b, events, func(i int, _ time.Time) bool { return before+int64(i) < consumer.applied.Load()+most })
	steps := consumer.wait(b).Steps
	return float64(n) / steps[len(steps)-1].At.Sub(start).Seconds()
}

// freshness streams events at a rate and measures the latency of each until it is applied: from its
// creation, the producer's share included, and from the broker's acknowledgement. The first half
// warms up: until then the broker's JVM compiles at the cost of a core.
func (s *side) freshness(b *testing.B, brokers []string, feed *feed, perSecond float64) {
	cpu := s.info(b, "cpu", "used_cpu_user", "used_cpu_sys")
	made, acknowledged, found := s.ages(b, feed, order{Consumer: s.name, Brokers: brokers, Redis: s.addr}, perSecond, 2**steady)
	cpu = s.info(b, "cpu", "used_cpu_user", "used_cpu_sys") - cpu
	fmt.Printf("\nms from an event until it is applied, at %.0f events a second, half load\n", perSecond)
	report := func(since string, ages []time.Duration) {
		fmt.Printf("  since it was %s: p50 %.1f, p99 %.1f\n", since, percentile(ages, 50), percentile(ages, 99))
	}
	report("made", made)
	report("acknowledged", acknowledged)
	millions := perSecond * (2 * steady.Seconds()) / 1e6
	fmt.Printf("  CPU s per million events: consumer %.2f, Redis %.2f\n", found.CPU/millions, cpu/millions)
}

// percentile returns a percentile, in ms, of sorted ages.
func percentile(ages []time.Duration, percent int) float64 {
	return ages[len(ages)*percent/100].Seconds() * 1e3
}

// ages streams events at a rate for some time to a consumer, and returns the sorted ages of the events of the second
// half when they were applied.
func (s *side) ages(b *testing.B, feed *feed, o order, perSecond float64, over time.Duration) (made, acknowledged []time.Duration, found outcome) {
	n := int(perSecond * over.Seconds())
	feed.users = population(feed.produced + n)
	o.Until = int64(feed.produced + n)
	consumer := o.start(b)
	<-consumer.started
	start := time.Now().Add(time.Second + time.Duration(n)*10*time.Microsecond) // longer than making the events takes
	events := feed.made(n, start, over)
	if time.Now().After(start) {
		b.Fatalf("%d events were made too late", n)
	}
	records := feed.stream(b, events, func(i int, now time.Time) bool { return !events[i].Timestamp.After(now) })
	applied := map[recordID][]step{}
	found = consumer.wait(b)
	for _, s := range found.Steps {
		id := recordID{Topic: s.Topic, Partition: s.Partition}
		applied[id] = append(applied[id], s)
	}
	for _, r := range records[n/2:] {
		steps := applied[recordID{Topic: r.Topic, Partition: r.Partition}]
		i, _ := slices.BinarySearchFunc(steps, r.Offset+1, func(s step, next int64) int { return int(s.Offset - next) })
		made = append(made, steps[i].At.Sub(r.made))
		acknowledged = append(acknowledged, max(0, steps[i].At.Sub(r.acknowledged)))
	}
	slices.Sort(made)
	slices.Sort(acknowledged)
	return made, acknowledged, found
}

func createTopics(b *testing.B, client *kafka.Client) {
	// The events are older than the brokers' default retention.
	forever := []kafka.ConfigEntry{{ConfigName: "retention.ms", ConfigValue: "-1"}}
	request := &kafka.CreateTopicsRequest{}
	for name, n := range map[string]int{transactions: partitions, logins: partitions, deadLetters: 1, "merchants": 1, "weir.lists": 1} {
		request.Topics = append(request.Topics, kafka.TopicConfig{
			Topic: name, NumPartitions: n, ReplicationFactor: 1, ConfigEntries: forever,
		})
	}
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	reply, err := client.CreateTopics(ctx, request)
	if err != nil {
		b.Fatal(err)
	}
	for topic, err := range reply.Errors {
		if err != nil {
			b.Fatalf("create topic %s: %v", topic, err)
		}
	}
}
