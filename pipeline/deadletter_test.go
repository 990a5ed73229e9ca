package pipeline_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/store"
)

// Brokers take batches of up to 1 MiB by default. Dead letters that are larger together go into several, and one whose
// record was larger but compressed is compressed, too.
func TestLargeDeadLetters(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	client := producer(t, broker, kgo.ProducerBatchCompression(kgo.GzipCompression()), kgo.ProducerBatchMaxBytes(4<<20))
	var poison []kafka.Message
	for _, size := range append(slices.Repeat([]int{20_000}, 120), 2<<20) {
		poison = append(poison, kafka.Message{Time: time.UnixMilli(at), Value: []byte("{" + strings.Repeat("x", size))})
	}
	produce(t, client, topic, payments(0, 10)...)
	produce(t, client, topic, poison...)
	produce(t, client, topic, payments(10, 20)...)
	b.run()
	b.expect(20)
	if largest := slices.MaxFunc(b.readDead(len(poison)), bySize); header(largest, "weir-reason") != "oversized" || len(largest.Value) != 1+2<<20 {
		t.Errorf("the largest dead letter has %d bytes and the headers %q", len(largest.Value), largest.Headers)
	}
}

// Dead letters that are small enough for their topic one by one may be too large for it together.
func TestDeadLettersInATopicOfSmallBatches(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	reply, err := broker.Client().AlterConfigs(t.Context(), &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: b.config.DeadLetterTopic,
		Configs: []kafka.AlterConfigRequestConfig{{Name: "max.message.bytes", Value: "50000"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range reply.Errors {
		if err != nil {
			t.Fatal(err)
		}
	}
	poison := kafka.Message{Time: time.UnixMilli(at), Value: []byte("{" + strings.Repeat("x", 20_000))}
	client := producer(t, broker)
	produce(t, client, topic, slices.Repeat([]kafka.Message{poison}, 10)...)
	produce(t, client, topic, payments(0, 10)...)
	b.run()
	b.expect(10)
	b.readDead(10)
}

// A record that fits into its topic, but with the headers of a letter not into that of dead letters, is written cut and
// says so, under its seal, and its partition goes on.
func TestDeadLettersThatDoNotFitAreCut(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	limit := func(of string, bytes int) {
		reply, err := broker.Client().AlterConfigs(t.Context(), &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: of,
			Configs: []kafka.AlterConfigRequestConfig{{Name: "max.message.bytes", Value: strconv.Itoa(bytes)}},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range reply.Errors {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	limit(topic, 1<<20)
	limit(b.config.DeadLetterTopic, 300_000)
	random := rand.NewChaCha8([32]byte{7})
	noise := func(n int) []byte { // nothing compresses it
		text := make([]byte, n)
		_, _ = random.Read(text)
		return text
	}
	value, key, headed := append([]byte("{"), noise(1<<20-200)...), noise(500_000), noise(400_000)
	poison := []kafka.Message{
		{Time: time.UnixMilli(at), Value: value, Headers: []kafka.Header{{Key: "trace", Value: []byte("1")}}},
		{Time: time.UnixMilli(at), Value: []byte("{"), Key: key},
		{Time: time.UnixMilli(at), Value: []byte("{"), Headers: []kafka.Header{{Key: "trace", Value: headed}}},
		{Time: time.UnixMilli(at), Value: []byte("{small")},
	}
	client := producer(t, broker, kgo.ProducerBatchMaxBytes(2<<20))
	produce(t, client, topic, payments(0, 10)...)
	for _, m := range poison {
		produce(t, client, topic, m)
	}
	produce(t, client, topic, payments(10, 20)...)
	b.run()
	b.expect(20)
	seal, err := b.store.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range b.readDead(len(poison)) {
		offset, err := strconv.Atoi(header(letter, "weir-offset"))
		if err != nil {
			t.Fatal(err)
		}
		original := poison[offset-10]
		cut, message := header(letter, "weir-cut"), header(letter, "weir-message")
		if original.Headers == nil && original.Key == nil {
			if cut != "" || strings.Contains(message, "cut") || string(letter.Value) != "{small" {
				t.Errorf("a letter that fits is %q: %s, cut %q", letter.Value, message, cut)
			}
			continue
		}
		want := fmt.Sprintf("; the letter is cut, since more does not fit into its topic: it has %d of the value's %d bytes", len(letter.Value), len(original.Value))
		if cut != fmt.Sprint(len(original.Key), " ", len(original.Value)) || !strings.HasSuffix(message, want) || header(letter, "weir-reason") != "malformed" ||
			!bytes.HasPrefix(original.Value, letter.Value) || !bytes.HasPrefix(original.Key, letter.Key) || len(letter.Value)+len(letter.Key) > 300_000 {
			t.Errorf("the letter of offset %d: cut %q, message %q, %d bytes of key and %d of value", offset, cut, message, len(letter.Key), len(letter.Value))
		}
		var headers record.HeaderList
		for _, h := range letter.Headers {
			headers = append(headers, record.Header(h))
		}
		ours, _ := record.Unseal(seal, b.config.DeadLetterTopic, letter.Key, letter.Value, headers)
		if said, _ := ours.Last(pipeline.HeaderCut); string(said) != cut {
			t.Errorf("the seal of the letter of offset %d does not prove that it is cut: %q, want %q", offset, said, cut)
		}
	}
}

func bySize(a, b kafka.Message) int { return cmp.Compare(len(a.Value), len(b.Value)) }

// The error of a batch that cannot be written says once why.
func TestErrorOfDeadLetters(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	b.config.DeadLetterTopic = topic + "-missing"
	bad := payment(0)
	bad.Value = []byte("{")
	produce(t, producer(t, broker), topic, bad, bad, bad)
	b.run()
	testkit.Eventually(t, time.Minute, "readiness says why", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), "write dead letters to "+topic+"-missing: [3] Unknown Topic Or Partition") &&
			strings.Count(err.Error(), "[3]") == 1, fmt.Sprint(err)
	})
}

// A processor that stops does not wait for a broker that does not answer, once the time for what is under way is over.
func TestDeadLettersAreGivenUp(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{deadLetters: 1})
	asked := make(chan struct{})
	broker.ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		close(asked)
		return nil, nil, true // no answer
	})
	transport := new(kafka.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	writer := pipeline.NewDeadLetterWriter(broker.ListenAddrs(), transport, deadLetters)
	ctx, giveUp := context.WithCancel(t.Context())
	go func() {
		<-asked
		giveUp()
	}()
	if err := writer.WriteMessages(ctx, make([]kafka.Message, 500)...); !errors.Is(err, context.Canceled) {
		t.Fatalf("letters without an answer: got error %v, want that of the context", err)
	}
	closed := make(chan struct{})
	go func() {
		writer.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second): // half of what kafka-go waits for an answer
		t.Error("the writer waits for letters that were given up")
	}
}

// While dead letters cannot be written, only some of them are tried: the other partitions of the worker wait meanwhile.
func TestDeadLettersThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{deadLetters: 1})
	fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	transport := new(kafka.Transport)
	t.Cleanup(transport.CloseIdleConnections)
	writer := pipeline.NewDeadLetterWriter(broker.ListenAddrs(), transport, deadLetters)
	defer writer.Close()
	letters := make([]kafka.Message, 3000)
	if err := writer.WriteMessages(t.Context(), letters...); !errors.Is(err, kafka.NotEnoughReplicas) {
		t.Errorf("got error %v, want that of the brokers", err)
	}
	const most = 500 / 100 * 3 // three tries for each hundred of the first ones
	if n := fault.Hits(); n > most {
		t.Errorf("%d requests, want at most %d", n, most)
	}
	fault.Remove()
	if err := writer.WriteMessages(t.Context(), letters...); err != nil {
		t.Error(err)
	}
}

// Records that are read again for shards that lag have their dead letters already. These are not counted and listed
// again.
func TestDeadLettersAreCountedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics, b.config.Workers = metrics, 1
	var batches atomic.Int64
	b.config.Store = writing{b.store, func() store.Writer { return lagOnce{b.store.NewWriter(), &batches} }}
	sent, poison := payments(0, 900), 0
	for i := 0; i < len(sent); i += 91 {
		sent[i].Value = []byte("{")
		poison++
	}
	b.write(sent...)
	b.run()
	b.committed(len(sent))
	b.readDead(poison)
	if n := count(t, metrics, "weir_dead_letters_total"); n != float64(poison) {
		t.Errorf("%v dead letters are counted, want %d", n, poison)
	}
	known := b.processor.DeadLetters()
	for i, d := range known {
		if slices.Contains(known[:i], d) {
			t.Errorf("%+v is listed twice", d)
		}
	}
	if len(known) != poison {
		t.Errorf("%d dead letters are listed, want %d", len(known), poison)
	}
}

// While enriched events cannot be written, their records are read again and again. The dead letters of others between
// them are written once.
func TestDeadLettersBesideEnrichedEventsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := newEnrichBench(t)
	metrics := prometheus.NewRegistry()
	b.config.Metrics, b.config.Workers = metrics, 1
	fault := b.broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: enrichedTopic, Err: kerr.NotEnoughReplicas, Count: -1})
	sent := purchases(9, 20)
	bad := sent[0]
	bad.Value = []byte("{")
	b.write(append(sent, bad)...)
	b.run()
	testkit.Eventually(t, 30*time.Second, "several tries", func() (bool, string) { return fault.Hits() >= 5*partitions, fmt.Sprint(fault.Hits()) })
	fault.Remove()
	b.committed(len(sent) + 1)
	client := &kafka.Client{Addr: kafka.TCP(b.config.Brokers...), Transport: b.config.Transport}
	reply, err := client.ListOffsets(t.Context(), &kafka.ListOffsetsRequest{
		Topics: map[string][]kafka.OffsetRequest{deadLetters: {kafka.LastOffsetOf(0)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n, dead := reply.Topics[deadLetters][0].LastOffset, count(t, metrics, "weir_dead_letters_total"); dead == 0 || float64(n) != dead {
		t.Errorf("%d dead letters are written and %v counted, want as many", n, dead)
	}
}

// Whoever writes events may give them headers of Weir's. They count as what they are, and their dead letters are found.
func TestForgedHeadersHideNothing(t *testing.T) {
	t.Parallel()
	b, topic := newKafkaBench(t, kafkatest.Shared(t), 1)
	client, metrics := producer(t, kafkatest.Shared(t)), prometheus.NewRegistry()
	b.config.Metrics = metrics
	forged := []kafka.Header{
		{Key: "weir-counts-in", Value: fmt.Appendf(nil, "%s %s/0/0 1 ", b.config.Namespace, topic)}, {Key: "weir-seal", Value: []byte("1 AAAAAAAAAAAAAAAAAAAAAA")},
	}
	events := payments(0, 10)
	for i := range events[1:] { // the first is the "original"
		events[1+i].Headers = forged
	}
	poison := kafka.Message{Time: time.UnixMilli(at), Value: []byte("{"), Headers: []kafka.Header{
		{Key: "weir-receipt", Value: []byte(topic + "/0/10")}, {Key: "weir-skipped", Value: []byte(topic + "/0")}, {Key: "trace", Value: []byte("1")},
	}}
	produce(t, client, topic, append(events, poison)...)
	b.run()
	b.expect(10)
	letter := b.readDead(1)[0]
	var names []string
	for _, h := range letter.Headers {
		names = append(names, h.Key)
	}
	if want := "foreign-weir-receipt foreign-weir-skipped trace weir-reason weir-message weir-stream weir-topic weir-partition weir-offset weir-timestamp weir-namespace weir-seal"; strings.Join(names, " ") != want {
		t.Errorf("got the headers %v, want %s", names, want)
	}
	want := "# HELP weir_forged_headers_total Records of events with headers that only Weir writes and without its seal. They are events like any other.\n" +
		"# TYPE weir_forged_headers_total counter\nweir_forged_headers_total 10\n"
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "weir_forged_headers_total"); err != nil {
		t.Error(err)
	}
}
