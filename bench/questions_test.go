package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// questionDefinitions are 20 features of users, devices and cards.
const questionDefinitions = `
streams:
  tx:
    topic: transactions
    timestamp: timestamp
    fields:
      user_id: string
      device_id: string
      card_id: string
      merchant_id: string
      status: string
      amount: {type: decimal, scale: 2}
features:
  user_tx_1h: COUNT(1h, tx, user_id)
  user_tx_1d: COUNT(1d, tx, user_id)
  user_tx_7d: COUNT(7d, tx, user_id)
  user_amount_1d: SUM(1d, tx, amount, user_id)
  user_amount_7d: SUM(7d, tx, amount, user_id)
  user_avg_7d: AVG(7d, tx, amount, user_id)
  user_max_30d: MAX(30d, tx, amount, user_id)
  user_declined_1d: COUNT(1d, tx, user_id, where='status == "declined"')
  user_merchants_7d: COUNT_DISTINCT(7d, tx, user_id, merchant_id)
  device_tx_1h: COUNT(1h, tx, device_id)
  device_tx_7d: COUNT(7d, tx, device_id)
  device_amount_1d: SUM(1d, tx, amount, device_id)
  device_users_30d: COUNT_DISTINCT(30d, tx, device_id, user_id)
  device_cards_7d: COUNT_DISTINCT(7d, tx, device_id, card_id)
  device_max_7d: MAX(7d, tx, amount, device_id)
  card_tx_1d: COUNT(1d, tx, card_id)
  card_amount_1d: SUM(1d, tx, amount, card_id)
  card_amount_30d: SUM(30d, tx, amount, card_id)
  card_merchants_7d: COUNT_DISTINCT(7d, tx, card_id, merchant_id)
  card_devices_7d: COUNT_DISTINCT(7d, tx, card_id, device_id)
services:
  all: [user_tx_1h, user_tx_1d, user_tx_7d, user_amount_1d, user_amount_7d, user_avg_7d, user_max_30d, user_declined_1d,
    user_merchants_7d, device_tx_1h, device_tx_7d, device_amount_1d, device_users_30d, device_cards_7d, device_max_7d,
    card_tx_1d, card_amount_1d, card_amount_30d, card_merchants_7d, card_devices_7d]
`

const (
	questionUsers  = 25_000 // and as many cards, and twice as many devices: 100,000 entities
	askers         = 16     // that ask at the same time
	manyAskers     = 64     // so many that there is always one who waits
	questionShards = 16
	// asksFor is how long each way to ask is measured.
	asksFor = 5 * time.Second
	pace    = 1000 // questions a second, at which each way is asked as well
)

// way is one way to ask: it does so once for the entities of a number.
type way struct {
	name string
	ask  func(n uint64) error
	// cpu is the CPU time, in seconds, that the process has taken which answers.
	cpu func(b *testing.B) float64
}

// BenchmarkQuestions asks for 20 features of 3 entities each, over HTTP, and
// beside that has go-redis read the same keys in a pipeline and do nothing with
// them, or send bytes that were fixed before: what net/http and go-redis leave
// to be had. Weir answers in a process of its own; who asks does no more than write
// requests and read responses off a connection. Feast's server, where there is
// one, is asked for as many features of as many entities. Run it once:
// -benchtime 1x.
func BenchmarkQuestions(b *testing.B) {
	for b.Loop() {
		questions(b)
	}
}

func questions(b *testing.B) {
	server := redistest.New(b, redistest.Options{})
	client := server.Client(b)
	registry, err := definition.Parse("questions.yaml", []byte(questionDefinitions))
	if err != nil {
		b.Fatal(err)
	}
	s := redisstore.New(client, namespace, questionShards)
	now := time.Now()
	loadEntities(b, s, registry, now)
	api := startAPI(b, server.Addr())
	size := api.answerSize(b, question(0))
	ways := []way{
		{"Weir over HTTP", func(n uint64) error { return api.post("/v1/query", question(n)) }, api.cpu},
		{"go-redis, same keys", func(n uint64) error {
			return readKeys(context.Background(), client, questionKeys(n, registry))
		}, func(*testing.B) float64 { return cpuSeconds() }},
		{"the same over HTTP, fixed bytes", func(n uint64) error {
			return api.post(fmt.Sprintf("/floor?n=%d&bytes=%d", n, size), question(n))
		}, api.cpu},
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "\n20 features, 3 entities\tone asks: a second\t%d ask\tCPU µs a question\tof Redis\tp50\tp99\tp99.9\t%d ask: a second\tat 1,000 a second: p50\tp99\tp99.9\t\n",
		askers, manyAskers)
	var asked []throughput
	for _, w := range ways {
		asked = append(asked, w.measure(b, client, table))
	}
	weir, reader, floor := asked[0], asked[1], asked[2]
	allocations := allocationsOf(b, api, ways[0])
	servers := besideFeast(b, table)
	if err := table.Flush(); err != nil {
		b.Fatal(err)
	}
	fmt.Printf("Weir answers %.2f times as many questions as go-redis reads where %d ask, %.2f times where %d do, %.2f times where one does\n",
		weir.some/reader.some, askers, weir.many/reader.many, manyAskers, weir.one/reader.one)
	fmt.Printf("It answers %.2f times as many as a loop of one reads where %d ask, %.2f times where %d do\n",
		weir.some/reader.one, askers, weir.many/reader.one, manyAskers)
	fmt.Printf("It answers %.2f times as many as net/http and go-redis could that computed nothing\n", weir.some/floor.some)
	fmt.Printf("It allocates %.0f times a question\n", allocations)
	b.ReportMetric(weir.some/reader.some, "rate-ratio")
	fastest := 0.0
	for _, f := range servers {
		fmt.Printf("Weir answers %.1f times as many questions as %s where %d ask, %.1f times where %d do\n",
			weir.some/f.some, f.way, askers, weir.many/f.many, manyAskers)
		fastest = max(fastest, f.some)
	}
	if fastest > 0 {
		b.ReportMetric(weir.some/fastest, "feast-rate-ratio")
	}
}

// allocationsOf is how many heap objects the API allocates for a question.
func allocationsOf(b *testing.B, a *api, w way) float64 {
	const n = 2_000
	_, before := a.usage(b)
	for i := range uint64(n) {
		if err := w.ask(i * 7919); err != nil {
			b.Fatal(err)
		}
	}
	_, after := a.usage(b)
	return float64(after-before) / n
}

// throughput is how many questions a way answers a second: where one asks, where
// askers do and where manyAskers do.
type throughput struct {
	way             string
	one, some, many float64
}

// measure adds a row to the table, and returns the throughput in it. The client is
// of the Redis that holds the answers.
func (w way) measure(b *testing.B, client *redis.Client, table io.Writer) (r throughput) {
	r.way, r.one = w.name, float64(len(load(b, w, 0, 1)))/asksFor.Seconds()
	server := side{redis: client}
	redisCPU := func() float64 { return server.info(b, "cpu", "used_cpu_user", "used_cpu_sys") }
	cpu, redisBefore := w.cpu(b), redisCPU()
	full := load(b, w, 0, askers)
	n := float64(len(full))
	cpu, redisBefore = (w.cpu(b)-cpu)/n*1e6, (redisCPU()-redisBefore)/n*1e6
	r.some = n / asksFor.Seconds()
	r.many = float64(len(load(b, w, 0, manyAskers))) / asksFor.Seconds()
	var paced []time.Duration
	if r.some >= pace { // one that is slower falls behind ever further
		paced = load(b, w, pace, askers)
	}
	fmt.Fprintf(table, "%s\t%.0f\t%.0f\t%.0f\t%.0f\t%s\t%.0f\t%s\t\n", w.name, r.one, r.some, cpu, redisBefore, quantiles(full), r.many, quantiles(paced))
	return r
}

// load has some ask for a while, as fast as they can or at a rate, and returns
// how long each question took, sorted. At a rate, a question's time begins when
// it is due.
func load(b *testing.B, w way, rate, askers int) []time.Duration {
	var all []time.Duration
	var mu sync.Mutex
	var next atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	for asker := range askers {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(asker), 1))
			var took []time.Duration
			for {
				due := time.Now()
				if rate > 0 {
					due = began.Add(time.Duration(next.Add(1)) * time.Second / time.Duration(rate))
					time.Sleep(time.Until(due))
				}
				if due.Sub(began) > asksFor {
					break
				}
				if err := w.ask(random.Uint64()); err != nil {
					b.Error(err)
					break
				}
				took = append(took, time.Since(due))
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all
}

// quantiles are the cells of a table for p50, p99 and p99.9, with dashes where
// nothing was asked.
func quantiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "-\t-\t-"
	}
	at := func(q float64) time.Duration {
		return sorted[int(q*float64(len(sorted)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("%v\t%v\t%v", at(0.5), at(0.99), at(0.999))
}

// entitiesOf are the users, devices and cards of a question.
func entitiesOf(n uint64) (list [3][3]string) {
	for i := range list {
		user := (n + uint64(i)*7919) % questionUsers
		list[i] = [3]string{fmt.Sprintf("u%06d", user), fmt.Sprintf("d%06d", 2*user+n/questionUsers%2), fmt.Sprintf("c%06d", user)}
	}
	return list
}

// question is one in JSON.
func question(n uint64) []byte {
	var out bytes.Buffer
	out.WriteString(`{"service":"all","entities":[`)
	for i, e := range entitiesOf(n) {
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, `{"user_id":%q,"device_id":%q,"card_id":%q}`, e[0], e[1], e[2])
	}
	out.WriteString("]}")
	return out.Bytes()
}

// readKeys reads keys in a pipeline, and does nothing with what they hold.
func readKeys(ctx context.Context, client *redis.Client, keys []string) error {
	pipe := client.Pipeline()
	for _, key := range keys {
		pipe.Get(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// questionKeys are the keys in which the answers to a question stand.
func questionKeys(n uint64, r *features.Registry) (keys []string) {
	for _, e := range entitiesOf(n) {
		for i, by := range []string{"user_id", "device_id", "card_id"} {
			group := r.Series[slices.IndexFunc(r.Series, func(s *state.Series) bool { return s.By[0] == by })].Group
			shard := state.Shard(state.EntityHash([]byte(e[i])), questionShards)
			keys = append(keys, keyspace.ShardTag(namespace, shard, questionShards)+group+":"+e[i])
		}
	}
	return keys
}

// loadEntities applies eight events of each user within the last week.
func loadEntities(b *testing.B, s *redisstore.Store, r *features.Registry, now time.Time) {
	if err := s.Create(b.Context()); err != nil {
		b.Fatal(err)
	}
	p := state.Partition{Topic: transactions}
	if _, err := s.Place(b.Context(), state.Begin(p, s.Shards(), 0)); err != nil {
		b.Fatal(err)
	}
	mapper, writer, random := r.NewMapper(), s.NewWriter(), rand.New(rand.NewPCG(3, 4))
	batch, progress := &state.Batch{}, state.Begin(p, s.Shards(), 0).To
	for n := range int64(8 * questionUsers) {
		user, at := n%questionUsers, now.Add(-time.Duration(8-n/questionUsers)*20*time.Hour).UnixMilli()
		value := fmt.Appendf(nil, `{"timestamp":%d,"user_id":"u%06d","device_id":"d%06d","card_id":"c%06d","merchant_id":"m%04d","status":"approved","amount":%d.%02d}`,
			at, user, 2*user+n/questionUsers%2, user, random.IntN(3000), random.IntN(200), random.IntN(100))
		if len(batch.Ranges) == 0 {
			batch.Ranges = append(batch.Ranges, state.PartitionRange{Partition: p, Progress: progress})
		}
		if _, err := mapper.Map(&record.Record{Partition: p, Offset: n, Timestamp: at, Value: value}, 0, batch); err != nil {
			b.Fatal(err)
		}
		batch.Ranges[0].To = n + 1
		if n%1000 == 999 {
			if err := writer.Apply(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			batch.Reset()
		}
	}
}
