package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// enrichedDefinitions have features of all kinds of state.
const enrichedDefinitions = `
streams:
  payment:
    topic: payments
    match: type == "payment"
    timestamp: at
    fields: {user: string, card: string, shop: string, cents: int, rate: float}
    enrich: {service: risk, topic: payments.enriched}
features:
  paid: SUM(1d, payment, cents, user)
  payments: COUNT(lifetime, payment, user)
  shop_payments: COUNT(1h, payment, user, where='shop == "s1"')
  least: MIN(1h, payment, cents, user)
  most: MAX(10m, payment, cents, user)
  rated: SUM(1d, payment, rate, user)
  shops: COUNT_DISTINCT(1h, payment, user, shop)
  shops_seen: COUNT_DISTINCT(1h, payment, user, shop, method=last_seen, max=4)
  shops_about: APPROX_COUNT_DISTINCT(1h, payment, user, shop)
  last_shops: LAST_K(1h, payment, shop, user, k=3)
  recent: SUM(5m, payment, cents, user, tile=exact, max=4)
  mean: {expr: paid / payments}
  card_paid: SUM(1d, payment, cents, card)
  been_there: SEEN(1h, payment, user, shop)
  users_paid: SUM(1h, payment, cents, SET(1h, payment, card, user))
  users_recent: SUM(10m, payment, cents, user, tile=exact, through=card_users, max=2)
  users_shops: COUNT_DISTINCT(1h, payment, user, shop, through=last_users)
  card_users: SET(1h, payment, card, user)
  last_users: LAST_K(20m, payment, user, card, k=2)
  share: {expr: cents / users_paid + mean}
  cents: SUM(10m, payment, cents, card)
services:
  risk: [paid, payments, shop_payments, least, most, rated, shops, shops_seen, shops_about, last_shops, recent, mean, card_paid, been_there,
    users_paid, users_recent, users_shops, card_users, share]
`

const enrichedTopic = "payments.enriched"

func newEnrichBench(t *testing.T) *bench {
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.MaxEvents = 30
	b.config.ShutdownTimeout = 200 * time.Millisecond
	return b
}

// purchases are n events. Each user and each card stays in one partition, so
// that what is known at each event is determined. Some come late, some lack
// fields, some are poison or of no stream.
func purchases(seed uint64, n int) []kafka.Message {
	random := rand.New(rand.NewPCG(seed, 7))
	var list []kafka.Message
	for i := range n {
		p := random.IntN(partitions)
		recorded := at + int64(i)*1000
		event := map[string]any{
			"type": "payment", "at": recorded - random.Int64N(1+random.Int64N(1_800_000)), "cents": random.IntN(1000) - 300,
			"user": fmt.Sprintf("u%d|%d", p, random.IntN(4)), "card": fmt.Sprintf("c%d", p), "shop": fmt.Sprintf("s%d", random.IntN(5)),
			"rate": float64(random.IntN(8)) / 4,
		}
		switch random.IntN(20) {
		case 0:
			delete(event, "card")
		case 1:
			delete(event, "shop")
		case 2:
			event["cents"] = nil
		case 3:
			event["cents"] = "much"
		case 4:
			event["type"] = "refund"
		case 5:
			event["at"] = recorded - 2*time.Hour.Milliseconds() // longer ago than kept
		}
		value, err := json.Marshal(event)
		if err != nil {
			panic(err)
		}
		list = append(list, kafka.Message{
			Topic: "payments", Key: []byte{byte(p)}, Time: time.UnixMilli(recorded), Value: append(value, '\n'),
			Headers: []kafka.Header{{Key: "trace", Value: strconv.AppendInt(nil, int64(i), 10)}},
		})
	}
	return list
}

// told is an event that must be written, and how.
type told struct {
	offset       int64
	value, trace string
}

// wanted are by source partition the events that must be written for what was
// sent, in order: what a plain replay of the partition says.
func (b *bench) wanted(sent []kafka.Message) [partitions][]told {
	b.t.Helper()
	var all [partitions][]told
	var offsets [partitions]int64
	ctx, stored, batch := context.Background(), memory.New(), &state.Batch{Ranges: make([]state.PartitionRange, 1)}
	mapper := b.registry.NewMapper()
	var reading query.Reading
	service, _ := b.registry.Service("risk")
	for _, m := range sent {
		p := int(m.Key[0])
		offset := offsets[p]
		offsets[p]++
		batch.Reset()
		batch.Ranges = batch.Ranges[:1]
		out, err := mapper.Map(&record.Record{
			Partition: state.Partition{Topic: "payments", ID: int32(p)}, Offset: offset, Timestamp: m.Time.UnixMilli(), Value: m.Value,
		}, 0, batch)
		if err != nil || len(out.Events) == 0 {
			continue
		}
		event := out.Events[0]
		ask := func(f *features.Feature, entity []byte) query.Answer {
			reading.Reset(m.Time.UnixMilli())
			reading.Want(f, string(entity), event.Time)
			if err := reading.Read(ctx, stored); err != nil {
				b.t.Fatal(err)
			}
			var a query.Answer
			reading.Next(&a)
			return a
		}
		// Whether the user has been in the shop is asked before this event is one.
		met, _ := b.registry.Feature("been_there")
		user, _ := event.Entity(nil, met.By)
		been := ask(met.AskedAbout([]value.Value{met.Own(&event)}), user)
		been.Value, been.Items = been.Items[0].Value, nil
		if err := stored.Apply(ctx, batch); err != nil {
			b.t.Fatal(err)
		}
		text, sep := append([]byte(`{"event":`), m.Value[:len(m.Value)-1]...), `,"features":{`
		for _, f := range service.Features {
			text = fmt.Appendf(text, "%s%q:", sep, f.Name)
			sep = ","
			entity, ok := event.Entity(nil, f.By)
			if !ok {
				text = append(text, `{"value":null,"status":"NOT_FOUND"}`...)
				continue
			}
			if f.Forgets() && event.Time < m.Time.Add(-f.Keep).UnixMilli() {
				text = append(text, `{"value":null,"status":"OUTSIDE_MAX_AGE"}`...)
				continue
			}
			if f != met {
				a := ask(f, entity)
				text = a.AppendJSON(text)
			} else if met.Own(&event).IsNull() {
				text = append(text, `{"value":null,"status":"NULL_VALUE"}`...)
			} else {
				text = been.AppendJSON(text)
			}
		}
		all[p] = append(all[p], told{offset, string(append(text, "}}"...)), header(m, "trace")})
	}
	return all
}

// output reads a topic of enriched events by partition.
func (b *bench) output(topic string, partitions int) [][]kafka.Message {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	client := &kafka.Client{Addr: kafka.TCP(b.broker.ListenAddrs()...), Transport: b.config.Transport}
	var asked []kafka.OffsetRequest
	for p := range partitions {
		asked = append(asked, kafka.LastOffsetOf(p))
	}
	ends, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{topic: asked}})
	if err != nil {
		b.t.Fatal(err)
	}
	all := make([][]kafka.Message, partitions)
	for _, end := range ends.Topics[topic] {
		r := kafka.NewReader(kafka.ReaderConfig{
			Brokers: b.broker.ListenAddrs(), Topic: topic, Partition: end.Partition, MaxWait: 50 * time.Millisecond,
		})
		for range end.LastOffset {
			m, err := r.ReadMessage(ctx)
			if err != nil {
				b.t.Fatal(err)
			}
			all[end.Partition] = append(all[end.Partition], m)
		}
		r.Close()
	}
	return all
}

// checkEnriched compares the output, as one sees it who passes over repeated
// offsets, with what it must be. It returns how many were repeated.
func (b *bench) checkEnriched(sent []kafka.Message) (repeated int) {
	b.t.Helper()
	want := b.wanted(sent)
	for p, messages := range b.output(enrichedTopic, partitions) {
		seen := int64(-1)
		for i, m := range messages {
			offset, err := strconv.ParseInt(header(m, "weir-source-offset"), 10, 64)
			if err != nil || header(m, "weir-source-topic") != "payments" || header(m, "weir-source-partition") != strconv.Itoa(p) ||
				header(m, "weir-stream") != "payment" {
				b.t.Fatalf("record %d of partition %d has headers %q", i, p, m.Headers)
			}
			if offset <= seen {
				repeated++
				again := slices.IndexFunc(messages[:i], func(n kafka.Message) bool { return header(n, "weir-source-offset") == header(m, "weir-source-offset") })
				if first := messages[again]; string(first.Value) != string(m.Value) || !first.Time.Equal(m.Time) {
					b.t.Fatalf("offset %d of partition %d is written anew in another way\nfirst %s\nthen  %s", offset, p, first.Value, m.Value)
				}
				continue
			}
			seen = offset
			if len(want[p]) == 0 || offset != want[p][0].offset {
				b.t.Fatalf("partition %d goes on with offset %d; %d are to come, next %+.60v", p, offset, len(want[p]), want[p])
			}
			if w := want[p][0]; string(m.Value) != w.value || header(m, "trace") != w.trace || string(m.Key) != string(rune(p)) {
				b.t.Fatalf("offset %d of partition %d\ngot  %s\nwant %s", offset, p, m.Value, w.value)
			}
			want[p] = want[p][1:]
		}
	}
	for p := range want {
		if len(want[p]) > 0 {
			b.t.Errorf("%d events of partition %d were not written, from offset %d on", len(want[p]), p, want[p][0].offset)
		}
	}
	return repeated
}

// Each event is written with its features as of it, whatever else is in its
// batch and in the store.
func TestEnrich(t *testing.T) {
	b := newEnrichBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	sent := purchases(1, 900)
	b.write(sent[:600]...)
	b.run()
	b.committed(600)
	b.write(sent[600:]...)
	b.committed(900)
	if n := b.checkEnriched(sent); n != 0 {
		t.Errorf("%d events were written twice for nothing", n)
	}
	want := 0
	for _, p := range b.wanted(sent) {
		want += len(p)
	}
	if n := count(t, metrics, "weir_enriched_events_total"); n != float64(want) || n == 0 {
		t.Errorf("%v events counted as enriched, want %d", n, want)
	}
}

// errCrash is what a process that has crashed gets from the store.
var errCrash = errors.New("crashed")

// crash is what happens at one of the writer's calls, the last of its process.
type crash int

const (
	crashBefore crash = iota // of the events written, none is applied
	crashWithin              // some shards have applied the batch
	crashBehind              // all have, but the processor does not learn it
	crashes
)

// crashing lets a process crash at a call of its writers.
type crashing struct {
	store.Writer
	calls   *atomic.Int64
	at      int64
	how     crash
	crashed chan struct{}
}

func (c crashing) Apply(ctx context.Context, b *state.Batch) error {
	n := c.calls.Add(1)
	if n < c.at {
		return c.Writer.Apply(ctx, b)
	}
	if n > c.at {
		return errCrash
	}
	defer close(c.crashed)
	half := *b
	half.Ranges = slices.Clone(b.Ranges)
	for i := range half.Ranges {
		half.Ranges[i].Progress = slices.Clone(b.Ranges[i].Progress)
	}
	switch c.how {
	case crashWithin:
		half.EveryShard = false
		half.Updates = slices.DeleteFunc(slices.Clone(b.Updates), func(t state.EntityUpdate) bool { return state.Shard(t.Hash, 8)%2 == 0 })
		fallthrough
	case crashBehind:
		if err := c.Writer.Apply(ctx, &half); err != nil {
			return err
		}
	}
	return errCrash
}

func await(t *testing.T, happened <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(30 * time.Second):
		t.Fatalf("%s does not come", what)
	}
}

// Wherever a processor is killed between the writing of events and their being
// applied, nothing is missing and all that is written again is the same.
func TestEnrichOverCrashes(t *testing.T) {
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 1))
		b := newEnrichBench(t)
		sent := purchases(seed, 900)
		b.write(sent...)
		for i := range 8 {
			crashed := make(chan struct{})
			calls := new(atomic.Int64)
			at := 1 + random.Int64N(4)
			b.config.Store = writing{b.store, func() store.Writer {
				return crashing{b.store.NewWriter(), calls, at, crash(i) % crashes, crashed}
			}}
			b.run()
			await(t, crashed, "a crash")
			if err := b.stop(); err != nil {
				t.Fatal(err)
			}
		}
		b.config.Store = b.store
		b.run()
		b.committed(900)
		if n := b.checkEnriched(sent); n == 0 {
			t.Error("no event was written again; the crashes came to nothing")
		}
		if err := b.stop(); err != nil {
			t.Fatal(err)
		}
	}
}

// Events that cannot be written stop their partition and no other; once they
// can be, none is missing and the order is that of the log.
func TestEnrichedEventsThatCannotBeWritten(t *testing.T) {
	b := newEnrichBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	sent := purchases(5, 600)
	b.write(sent[:300]...)
	b.run()
	b.committed(300)
	fault := b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Partitions: []int32{0}, Err: kerr.NotEnoughReplicas, Count: -1,
	})
	stood := state.Highest(b.progress()[0])
	b.write(sent[300:]...)
	var ends [partitions]int64
	for _, m := range sent {
		ends[m.Key[0]]++
	}
	testkit.Eventually(t, 30*time.Second, "the other partitions carried, this one not", func() (bool, string) {
		p := b.progress()
		ok := state.Highest(p[0]) == stood && state.Lowest(p[1]) == ends[1] && state.Lowest(p[2]) == ends[2]
		return ok && b.processor.Ready(context.Background()) != nil, fmt.Sprint(p, ends)
	})
	if err := b.processor.Ready(context.Background()); err == nil ||
		!strings.Contains(err.Error(), "payments/0: write enriched events to "+enrichedTopic+": [19] Not Enough Replicas") {
		t.Errorf("readiness says %v", err)
	}
	fault.Remove()
	b.committed(600)
	b.checkEnriched(sent)
	if n := count(t, metrics, "weir_rewinds_total"); n != 0 {
		t.Errorf("Redis is said to have gone back in time %v times", n)
	}
}

// Requests that fail by chance leave the order as it is.
func TestEnrichOverFailingRequests(t *testing.T) {
	b := newEnrichBench(t)
	random := rand.New(rand.NewPCG(6, 1))
	b.broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Err: kerr.RequestTimedOut, Count: -1,
		When: func(kmsg.Request) bool { return random.IntN(4) == 0 },
	})
	sent := purchases(6, 600)
	b.write(sent...)
	b.run()
	b.committed(600)
	b.checkEnriched(sent)
}

// Two owners of every partition at once, as there are for a moment where one
// hangs and the group takes its partitions from it, write the same.
func TestEnrichByTwoOwners(t *testing.T) {
	for seed := range uint64(3) {
		b := newEnrichBench(t)
		sent := purchases(seed, 900)
		b.write(sent[:300]...)
		b.run()
		first := b.stop
		b.config.Group += "-other"
		b.run()
		b.write(sent[300:600]...)
		b.write(sent[600:]...)
		b.committed(900)
		b.checkEnriched(sent)
		for _, stop := range []func() error{first, b.stop} {
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A Redis that is put back lets events be written again, the same as before.
func TestEnrichWhereRedisGoesBackInTime(t *testing.T) {
	b := newEnrichBench(t)
	server := redistest.New(t, redistest.Options{AOF: true})
	b.useRedis(server)
	sent := purchases(8, 900)
	b.write(sent[:300]...)
	b.run()
	b.committed(300)
	old := server.SaveCopy()
	b.write(sent[300:600]...)
	b.committed(600)
	server.RestoreCopy(old)
	b.write(sent[600:]...)
	b.committed(900)
	if n := b.checkEnriched(sent); n == 0 {
		t.Error("no event was written again")
	}
}

// held delays what is read of the state until it is let.
type held struct {
	store.Store
	once *sync.Once
	read chan struct{} // closed once the first reading is done
	let  chan struct{}
}

func (h held) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	found, err := h.Store.Snapshot(ctx, reads)
	h.once.Do(func() {
		close(h.read)
		<-h.let
	})
	return found, err
}

// A processor that hung over what it has read does not answer from it once
// another one has got further, though not as far as its own batch goes.
func TestEnrichFromWhatIsOutdated(t *testing.T) {
	b := newEnrichBench(t)
	b.config.Workers = 1
	sent := purchases(9, 300)
	b.write(sent...)
	group, few := b.config.Group, b.config.MaxEvents
	b.config.MaxEvents = len(sent)
	hung := held{b.store, new(sync.Once), make(chan struct{}), make(chan struct{})}
	b.config.Store = hung
	b.run()
	await(t, hung.read, "a reading")
	crashed, calls := make(chan struct{}), new(atomic.Int64)
	b.config.Store = writing{b.store, func() store.Writer { return crashing{b.store.NewWriter(), calls, 3, crashBehind, crashed} }}
	b.config.Group, b.config.MaxEvents = group+"-other", few
	b.run()
	await(t, crashed, "a crash")
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}
	close(hung.let)
	b.config.Group = group
	b.committed(300)
	if n := b.checkEnriched(sent); n != 0 {
		t.Errorf("%d events were written again that the other one had applied", n)
	}
}

// Where the topics have not as many partitions, keys choose; the order of a
// partition's events holds within each.
func TestEnrichIntoOtherPartitions(t *testing.T) {
	const outs = 2
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, enrichedTopic: outs, deadLetters: 1})
	sent := purchases(10, 600)
	b.write(sent...)
	b.run()
	b.committed(600)
	want := b.wanted(sent)
	for out, messages := range b.output(enrichedTopic, outs) {
		for _, m := range messages {
			p := int(m.Key[0])
			if to := (&kafka.Murmur2Balancer{}).Balance(m, 0, 1); to != out {
				t.Fatalf("key %q is in partition %d, want %d", m.Key, out, to)
			}
			if len(want[p]) == 0 || string(m.Value) != want[p][0].value {
				t.Fatalf("partition %d goes on with %s", p, m.Value)
			}
			want[p] = want[p][1:]
		}
	}
	for p := range want {
		if len(want[p]) > 0 {
			t.Errorf("%d events of partition %d were not written", len(want[p]), p)
		}
	}
}

// A record that two streams take is written for each, with the features of its
// own service, although both are written to one topic.
func TestEnrichOfTwoStreams(t *testing.T) {
	b := newBenchOf(t, `
streams:
  payment:
    topic: payments
    timestamp: at
    fields: {user: string, cents: int}
    enrich: {service: s, topic: payments.enriched}
  great:
    topic: payments
    match: cents >= 100
    timestamp: at
    fields: {user: string, cents: int}
    enrich: {service: great, topic: payments.enriched}
features:
  payments: COUNT(lifetime, payment, user)
  greats: COUNT(lifetime, great, user)
services:
  s: [payments]
  great: [payments, greats]
`, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.run()
	for _, cents := range []int{99, 100} {
		m := payment(0)
		m.Value = fmt.Appendf(nil, `{"at":%d,"user":"u","cents":%d}`, at, cents)
		b.write(m)
	}
	b.committed(2)
	const all = `{"value":%d,"status":"PRESENT","from":null,"to":1532496076032,"exact":true}`
	var got []string
	for _, m := range b.output(enrichedTopic, partitions)[0] {
		_, features, _ := strings.Cut(string(m.Value), `,"features":`)
		got = append(got, header(m, "weir-stream")+" "+header(m, "weir-source-offset")+" "+features)
	}
	want := []string{
		`payment 0 {"payments":` + fmt.Sprintf(all, 1) + `}}`,
		`great 1 {"payments":` + fmt.Sprintf(all, 2) + `,"greats":` + fmt.Sprintf(all, 1) + `}}`,
		`payment 1 {"payments":` + fmt.Sprintf(all, 2) + `}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("written were\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A processor waits for the topic that it is to write to, and says so.
func TestEnrichedTopicIsMissing(t *testing.T) {
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, deadLetters: 1})
	b.run()
	testkit.Eventually(t, 30*time.Second, "readiness tells of the topic", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err != nil && strings.Contains(err.Error(), `topic "payments.enriched": `), fmt.Sprint(err)
	})
}
