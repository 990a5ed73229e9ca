package pipeline_test

import (
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/model"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

const onceByID = `
streams:
  payment:
    topic: payments
    match: type == "payment"
    timestamp: at
    max_future: 1h
    id: id
    dedup: 10s
    fields: {user: string, cents: {type: int, required: true}}
  refund:
    topic: payments
    match: type == "refund"
    timestamp: at
    id: id
    dedup: 1m
    fields: {user: string}
features:
  count: COUNT(lifetime, payment, user)
  paid: SUM(lifetime, payment, cents, user, where='cents * cents * cents > 0')
  refunds: COUNT(lifetime, refund, user)
`

// repeating writes records some of which repeat the IDs of earlier ones, and keeps them.
type repeating struct {
	*bench
	random  *rand.Rand
	records []record.Record
	ends    map[int32]int64
	clock   int64
	ids     []string
}

// some writes more records: late, from the future, of equal timestamps, poison, without an ID, and copies of IDs.
func (r *repeating) some(n int) {
	r.t.Helper()
	var list []kafka.Message
	for range n {
		r.clock += r.random.Int64N(300)
		stamp := r.clock
		switch r.random.IntN(20) {
		case 0:
			stamp -= r.random.Int64N(120_000)
		case 1:
			stamp += r.random.Int64N(4000)
		}
		id := fmt.Sprintf(`"t%d"`, len(r.records))
		if len(r.ids) > 0 && r.random.IntN(3) > 0 {
			id = r.ids[max(0, len(r.ids)-1-r.random.IntN(100))]
		}
		id = []string{id, id, id, id, id, id, `null`, `""`}[r.random.IntN(8)]
		r.ids = append(r.ids, id)
		cents := []string{"1", "2", "7", "9223372036854775807", `"bad"`, "null"}[r.random.IntN(6)]
		if r.random.IntN(3) > 0 {
			cents = "5"
		}
		value := fmt.Sprintf(`{"type":%q,"id":%s,"at":%d,"user":"u%d","cents":%s}`,
			[]string{"payment", "payment", "refund", "other"}[r.random.IntN(4)], id, stamp, r.random.IntN(7), cents)
		p := int32(r.random.IntN(partitions))
		list = append(list, kafka.Message{Topic: "payments", Key: []byte{byte(p)}, Time: time.UnixMilli(stamp), Value: []byte(value)})
		r.records = append(r.records, record.Record{
			Partition: state.Partition{Topic: "payments", ID: p}, Offset: r.ends[p], Timestamp: stamp, Value: []byte(value),
		})
		r.ends[p]++
	}
	r.write(list...)
}

// expects waits until the answers are those of the plain model.
func (r *repeating) expects(registry *features.Registry) {
	r.t.Helper()
	m := model.New(registry)
	for _, rec := range r.records {
		_ = m.Apply(rec)
	}
	var want strings.Builder
	for _, f := range registry.Features {
		for user := range 7 {
			entity := fmt.Sprintf("u%d", user)
			v := m.Answer(f, entity, r.clock).Value
			fmt.Fprintf(&want, "%s %s=%s\n", entity, f.Name, v.AppendText(nil))
		}
	}
	testkit.Eventually(r.t, time.Minute, "the answers of the model", func() (bool, string) {
		h, err := r.store.History(r.t.Context())
		if err != nil {
			return false, err.Error()
		}
		serving := registry.Serving(h)
		var reading query.Reading
		reading.Reset(r.clock)
		for _, f := range serving.Features {
			for user := range 7 {
				reading.Want(f, fmt.Sprintf("u%d", user), r.clock)
			}
		}
		if err := reading.Read(r.t.Context(), r.store); err != nil {
			return false, err.Error()
		}
		var got strings.Builder
		for _, f := range serving.Features {
			for user := range 7 {
				var a query.Answer
				reading.Next(&a)
				fmt.Fprintf(&got, "u%d %s=%s\n", user, f.Name, a.Value.AppendText(nil))
			}
		}
		return got.String() == want.String(), fmt.Sprintf("got\n%swant\n%s", got.String(), want.String())
	})
}

// An event counts once by its ID, whoever reads the log from wherever: the next owner of a partition, the
// fill of a feature that is new, and that of a feature whose stream has another dedup now.
func TestEventsCountOnceByTheirID(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, onceByID, map[string]int{"payments": partitions, deadLetters: 1})
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	b.config.Backfill, b.config.BackfillRate, b.config.MaxEvents = true, 1, 30
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	r := &repeating{bench: b, random: rand.New(rand.NewPCG(1, 2)), ends: map[int32]int64{}, clock: at}
	r.some(800)
	b.run()
	r.expects(b.registry)

	// Owners change in the middle of repetitions.
	b.config.Metrics = nil
	for range 3 {
		r.some(50)
		stop := b.stop
		b.run() // another member, until the first one ends
		r.some(50)
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		r.some(20)
		r.expects(b.registry)
	}

	// A fill is continued by another process.
	more := defined.Registry(t, onceByID+"  users: COUNT(lifetime, payment, user, where='cents != 2')\n")
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.config.BackfillRate = 0.01
	b.run()
	b.processor.Reload(more)
	testkit.Eventually(t, time.Minute, "the fill has begun", func() (bool, string) {
		h, err := b.store.History(t.Context())
		return err == nil && len(h.Fills) > 0 && h.Fills[0].Filled > 0 && !h.Fills[0].Whole, fmt.Sprintf("%+v %v", h, err)
	})
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	b.config.Registry, b.config.BackfillRate = more, 1
	b.run()
	r.some(100)
	r.expects(more)

	// Another dedup is another state.
	longer := defined.Registry(t, strings.Replace(onceByID, "dedup: 10s", "dedup: 5m", 1))
	b.processor.Reload(longer)
	b.awaitClaims(longer, 0)
	r.some(100)
	r.expects(longer)
	b.processor.Reload(b.registry)
	r.some(100)
	r.expects(b.registry)

	counts := map[string]float64{}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "weir_events_total" {
			for _, m := range family.GetMetric() {
				counts[m.GetLabel()[0].GetValue()] += m.GetCounter().GetValue()
			}
		}
	}
	if counts["repeated"] == 0 {
		t.Errorf("no repetition is counted: %v", maps.All(counts))
	}
}

// identified are payments with IDs.
func identified(from, to int) (list []kafka.Message) {
	for i := from; i < to; i++ {
		m := payment(i)
		m.Value = append(fmt.Appendf(nil, `{"id":%d,`, i), m.Value[1:]...)
		list = append(list, m)
	}
	return list
}

// A process that reads back over a batch that cannot be decoded, and was set aside, does not do so again: it knows the
// events before and after it.
func TestReadingBackOverABrokenBatch(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := kafkatest.CreateTopic(t, broker, 1)
	b := newBenchOf(t, strings.Replace(definitions, "topic: payments", "topic: "+topic+"\n    id: id\n    dedup: 10m", 1), nil)
	b.config.Brokers, b.config.DeadLetterTopic = broker.Addrs(), kafkatest.CreateTopic(t, broker, 1)
	b.config.SetBrokenAside = true
	plain := producer(t, broker)
	bomber := producer(t, broker, kgo.ProducerBatchMaxBytes(100<<20), kgo.ProducerBatchCompression(kgo.GzipCompression()))
	produce(t, plain, topic, identified(0, 10)...)
	produce(t, bomber, topic, kafka.Message{Value: make([]byte, 65<<20), Time: time.UnixMilli(at)})
	produce(t, plain, topic, identified(10, 20)...)
	b.run()
	b.expect(20)
	if n := len(b.processor.DeadLetters()); n != 1 {
		t.Fatalf("%d dead letters are listed, want the batch", n)
	}
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	produce(t, plain, topic, slices.Concat(identified(5, 15), identified(20, 30), identified(0, 30))...)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	b.run()
	b.expect(30)
	testkit.Eventually(t, time.Minute, "all is applied", func() (bool, string) {
		s := b.processor.Stats()
		return gauge(t, metrics, "weir_lag_records") == 0, fmt.Sprintf("%+v", s)
	})
	b.expect(30)
	if s := b.processor.Stats(); s.Dead != 0 || len(b.processor.DeadLetters()) != 0 {
		t.Errorf("the second process has %+v and lists %d dead letters, want none", s, len(b.processor.DeadLetters()))
	}
}

// While partitions move between the workers of a process, what is known of their events moves along: nothing is read back.
func TestMemoriesMoveWithTheirPartitions(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, strings.Replace(definitions, "topic: payments", "topic: payments\n    id: id\n    dedup: 10m", 1), map[string]int{"payments": partitions, deadLetters: 1})
	lines := newLogLines(t)
	b.config.Logger = slog.New(slog.NewTextHandler(lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.config.Workers, b.config.MaxEvents = 3, 2
	b.config.BalanceInterval, b.config.Freshness = 20*time.Millisecond, time.Millisecond
	b.run()
	total := 0
	for wave := range 3 {
		for _, message := range []string{"one worker processes all partitions", "the workers share the partitions by their load"} {
			b.write(slices.Concat(identified(max(0, total-500), total), identified(total, total+1000))...)
			total += 1000
			testkit.Eventually(t, time.Minute, message, func() (bool, string) {
				n := lines.count(message)
				if n <= wave && message != "one worker processes all partitions" {
					b.write(identified(max(0, total-500), total)...)
				}
				return n > wave, fmt.Sprint(n)
			})
		}
	}
	b.expect(total)
	if n := lines.count("reading back"); n > 0 || b.processor.Stats().Repeated == 0 {
		t.Errorf("%d partitions were read back, want none; %+v", n, b.processor.Stats())
	}
}

// An event that comes again is not enriched again.
func TestRepeatedEventsAreEnrichedOnce(t *testing.T) {
	t.Parallel()
	b := newBenchOf(t, `
streams:
  payment: {topic: payments, timestamp: at, id: id, dedup: 10m, fields: {user: string}, enrich: {service: risk, topic: payments.enriched}}
features:
  payments: COUNT(lifetime, payment, user)
services:
  risk: [payments]
`, map[string]int{"payments": 1, enrichedTopic: 1, deadLetters: 1})
	b.run()
	for _, id := range []string{"a", "b", "a", "c", "b"} {
		b.write(kafka.Message{Topic: "payments", Key: []byte{0}, Time: time.UnixMilli(at), Value: fmt.Appendf(nil, `{"id":%q,"at":%d,"user":"u"}`, id, at)})
	}
	testkit.Eventually(t, time.Minute, "all records are applied", func() (bool, string) {
		s := b.processor.Stats()
		return s.Applied+s.Repeated == 5, fmt.Sprintf("%+v", s)
	})
	var got []string
	for _, m := range b.output(enrichedTopic, 1)[0] {
		got = append(got, header(m, "weir-source-offset"))
	}
	if !slices.Equal(got, []string{"0", "1", "3"}) {
		t.Errorf("the records at %v were written, want those at 0, 1 and 3", got)
	}
}
