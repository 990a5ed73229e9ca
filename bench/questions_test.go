package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
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
	questionUsers  = 25_000 // as many cards, twice as many devices: 100,000 entities
	questionShards = 16
)

// BenchmarkQuestions asks for 20 features of 3 entities each over HTTP. For comparison, go-redis
// reads the same keys in a pipeline and drops them, or a server sends fixed bytes: the least that
// net/http and go-redis cost. All alternate. Weir answers in a process of its own; the client only
// writes requests and reads responses on a connection. Feast's server, if there is one, is asked
// for as many features of as many entities. Run it once: -benchtime 1x.
func BenchmarkQuestions(b *testing.B) {
	for b.Loop() {
		questions(b)
	}
}

func questions(b *testing.B) {
	server := redistest.New(b, redistest.Options{})
	client := server.Client(b)
	registry := defined.Registry(b, questionDefinitions)
	s := redisstore.New(client, namespace, questionShards)
	now := time.Now()
	loadEntities(b, s, registry, now)
	api := startAPI(b, server.Addr())
	size := api.answerSize(b, question(0))
	asked := ask(b, []way{
		{"Weir over HTTP", func(n uint64) error { return api.post("/v1/query", question(n)) }, client, api.cpu, api.profile},
		{"go-redis, same keys", func(n uint64) error {
			return readKeys(context.Background(), client, questionKeys(n, registry))
		}, client, func(*testing.B) float64 { return cpuSeconds() }, nil},
		{"the same over HTTP, fixed bytes", func(n uint64) error {
			return api.post(fmt.Sprintf("/floor?n=%d&bytes=%d", n, size), question(n))
		}, client, api.cpu, api.profile},
	})
	weir, reader, floor := asked[0], asked[1], asked[2]
	allocations := allocationsOf(b, api, weir.way)
	feast := besideFeast(b, weir.way)
	printAsked(b, append(asked, feast...))
	fmt.Printf("Weir answers %.2f times as many questions as go-redis reads where %d ask, %.2f times where %d do, %.2f times where one does\n",
		weir.some.over(&reader.some), askers, weir.many.over(&reader.many), manyAskers, weir.one.over(&reader.one))
	fmt.Printf("It answers %.2f times as many as net/http and go-redis could that computed nothing where %d ask, %.2f times where %d do, for %.2f times the CPU\n",
		weir.some.over(&floor.some), askers, weir.many.over(&floor.many), manyAskers, weir.cpu/floor.cpu)
	fmt.Printf("It allocates %.0f times a question\n", allocations)
	b.ReportMetric(weir.some.over(&floor.some), "rate-ratio")
	for i := 0; i < len(feast); i += 2 {
		weir, f := feast[i], feast[i+1]
		fmt.Printf("Weir answers %.1f times as many questions as %s where %d ask, %.1f times where %d do\n",
			weir.some.over(&f.some), f.name, askers, weir.many.over(&f.many), manyAskers)
	}
}

// allocationsOf returns the heap objects that the API allocates for a question.
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

// entitiesOf returns the users, devices and cards of a question.
func entitiesOf(n uint64) (list [3][3]string) {
	for i := range list {
		user := (n + uint64(i)*7919) % questionUsers
		list[i] = [3]string{fmt.Sprintf("u%06d", user), fmt.Sprintf("d%06d", 2*user+n/questionUsers%2), fmt.Sprintf("c%06d", user)}
	}
	return list
}

// question returns the nth question in JSON.
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

// readKeys reads keys in a pipeline and drops their values.
func readKeys(ctx context.Context, client *redis.Client, keys []string) error {
	pipe := client.Pipeline()
	for _, key := range keys {
		pipe.Get(ctx, key)
	}
	_, err := pipe.Exec(ctx)
	return err
}

// questionKeys returns the keys that hold the answers to a question.
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
	if _, err := s.Place(b.Context(), testkit.FirstPlacement(p, s.Shards(), 0)); err != nil {
		b.Fatal(err)
	}
	mapper, writer, random := r.NewMapper(), s.NewWriter(), rand.New(rand.NewPCG(3, 4))
	batch, progress := &state.Batch{}, testkit.FirstPlacement(p, s.Shards(), 0).To
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
