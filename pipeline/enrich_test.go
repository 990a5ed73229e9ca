package pipeline_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
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
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/value"
)

// enrichedDefinitions have features of all layouts of state.
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
  against: {expr: 'event.cents / mean', stream: payment, default: -1}
  said: {expr: 'event.shop + " " + string(against)', stream: payment}
  elsewhere: COUNT(1h, payment, user, where='shop != event.shop', max=5)
  dearer: SUM(30m, payment, cents, card, where='cents > 0 and cents > event.cents', exclude=current)
  part: {expr: elsewhere / payments}
services:
  risk: [paid, payments, shop_payments, least, most, rated, shops, shops_seen, shops_about, last_shops, recent, mean, card_paid, been_there,
    users_paid, users_recent, users_shops, card_users, share, against, said, elsewhere, dearer, part]
`

const enrichedTopic = "payments.enriched"

func newEnrichBench(t *testing.T) *bench {
	b := newBenchOf(t, enrichedDefinitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	b.config.MaxEvents = 30
	b.config.ShutdownTimeout = 200 * time.Millisecond
	return b
}

// purchases are n events. Each user and each card stays in one partition, so the state at each event is deterministic.
// Some are late, some lack fields, some are poison or of no stream. No partition's records are far from those of another, or answers
// would say so.
func purchases(seed uint64, n int) []kafka.Message {
	random := rand.New(rand.NewPCG(seed, 7))
	var list []kafka.Message
	for i := range n {
		p := random.IntN(partitions)
		recorded := at + int64(i)*300
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
			event["at"] = recorded - 2*time.Hour.Milliseconds() // before what is kept
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

// enrichedEvent is an expected event.
type enrichedEvent struct {
	offset       int64
	value, trace string
}

// wanted returns, by source partition, the events that must be written for the sent records, in order, by a plain
// replay of the partition.
func (b *bench) wanted(sent []kafka.Message) [partitions][]enrichedEvent {
	b.t.Helper()
	var all [partitions][]enrichedEvent
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
			reading.SetPresent(m.Time.UnixMilli() - event.Stream.MaxFuture.Milliseconds())
			reading.SetInHand(&event)
			reading.Want(f, string(entity), event.Time)
			if err := reading.Read(ctx, stored); err != nil {
				b.t.Fatal(err)
			}
			var a query.Answer
			reading.Next(&a)
			return a
		}
		// Whether the user has been in the shop is asked before this event counts.
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
		all[p] = append(all[p], enrichedEvent{offset, string(append(text, "}}"...)), header(m, "trace")})
	}
	return all
}

// output reads a topic of enriched events by partition.
func (b *bench) output(topic string, partitions int) [][]kafka.Message {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
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

// checkEnriched compares the output, without repeated offsets, with the wanted events. It returns the number of
// repeated ones.
func (b *bench) checkEnriched(sent []kafka.Message) (repeated int) {
	b.t.Helper()
	want := b.wanted(sent)
	for p, messages := range b.output(enrichedTopic, partitions) {
		seen := int64(-1)
		for i, m := range messages {
			offset, err := strconv.ParseInt(header(m, "weir-source-offset"), 10, 64)
			if err != nil || header(m, "weir-source-topic") != "payments" || header(m, "weir-source-partition") != strconv.Itoa(p) ||
				header(m, "weir-stream") != "payment" {
				b.t.Fatalf("record %d of partition %d has unexpected headers %q", i, p, m.Headers)
			}
			if offset <= seen {
				repeated++
				again := slices.IndexFunc(messages[:i], func(n kafka.Message) bool { return header(n, "weir-source-offset") == header(m, "weir-source-offset") })
				if first := messages[again]; string(first.Value) != string(m.Value) || !first.Time.Equal(m.Time) {
					b.t.Fatalf("offset %d of partition %d was written again with a difference\nfirst %s\nthen  %s", offset, p, first.Value, m.Value)
				}
				continue
			}
			seen = offset
			if len(want[p]) == 0 || offset != want[p][0].offset {
				b.t.Fatalf("partition %d continues with offset %d; %d events are missing, the next is %+.60v", p, offset, len(want[p]), want[p])
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

// Each event is written with its features as of that event, independent of the rest of its batch.
func TestEnrich(t *testing.T) {
	t.Parallel()
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
		t.Errorf("%d events were written twice without a need", n)
	}
	want := 0
	for _, p := range b.wanted(sent) {
		want += len(p)
	}
	if n := count(t, metrics, "weir_enriched_events_total"); n != float64(want) || n == 0 {
		t.Errorf("%v events were counted as enriched, want %d", n, want)
	}
}

// Events that cannot be written stop their partition and no other; once they can be written, none is missing and the
// order is that of the log.
func TestEnrichedEventsCannotBeWritten(t *testing.T) {
	t.Parallel()
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
	testkit.Eventually(t, time.Minute, "the other partitions carried, this one not, and readiness says why", func() (bool, string) {
		p, err := b.progress(), fmt.Sprint(b.processor.Ready(context.Background()))
		ok := state.Highest(p[0]) == stood && state.Lowest(p[1]) == ends[1] && state.Lowest(p[2]) == ends[2]
		return ok && strings.Contains(err, "payments/0: write enriched events to "+enrichedTopic+": [19] Not Enough Replicas"), fmt.Sprint(p, ends, err)
	})
	fault.Remove()
	b.committed(600)
	b.checkEnriched(sent)
	if n := count(t, metrics, "weir_rewinds_total"); n != 0 {
		t.Errorf("%v rewinds were counted, want none", n)
	}
}

// Randomly failing requests do not change the order.
func TestEnrichWithFailingRequests(t *testing.T) {
	t.Parallel()
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
