package pipeline_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

// newKafkaBench is a bench on a real broker, whose topic of payments has that many partitions and a
// name of its own.
func newKafkaBench(t *testing.T, broker *kafkatest.Broker, partitions int) (b *bench, topic string) {
	t.Helper()
	topic = kafkatest.CreateTopic(t, broker, partitions)
	b = newBenchOf(t, strings.Replace(definitions, "topic: payments", "topic: "+topic, 1), nil)
	b.config.Brokers, b.config.DeadLetterTopic = broker.Addrs(), kafkatest.CreateTopic(t, broker, 1)
	return b, topic
}

// producer writes to partitions that its caller chooses.
func producer(t *testing.T, broker *kafkatest.Broker, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	client, err := kgo.NewClient(append(opts, kgo.SeedBrokers(broker.Addrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// produce writes messages to partition 0 of a topic.
func produce(t *testing.T, client *kgo.Client, topic string, messages ...kafka.Message) {
	t.Helper()
	var records []*kgo.Record
	for _, m := range messages {
		record := &kgo.Record{Topic: topic, Timestamp: m.Time, Key: m.Key, Value: m.Value}
		for _, h := range m.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader(h))
		}
		records = append(records, record)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

// gauge is the greatest value of a gauge, -1 if there is none.
func gauge(t *testing.T, r *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	value := -1.0
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.Metric {
				value = max(value, m.GetGauge().GetValue())
			}
		}
	}
	return value
}

// A producer that hangs in a transaction blocks everything written after it. That is not an error of the processor, but
// metrics show it.
func TestOpenTransactionIsSeen(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	metrics := prometheus.NewRegistry()
	b.config.Metrics = metrics
	plain := producer(t, broker)
	hung := producer(t, broker, kgo.TransactionalID(topic), kgo.TransactionTimeout(5*time.Minute)) // longer than the test takes
	produce(t, plain, topic, payments(0, 30)...)
	b.run()
	b.expect(30)
	if err := hung.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, hung, topic, payments(100, 102)...)
	produce(t, plain, topic, payments(30, 60)...)
	await := func(what string, open float64, aged bool) {
		t.Helper()
		testkit.Eventually(t, time.Minute, what, func() (bool, string) {
			lag, held := gauge(t, metrics, "weir_lag_records"), gauge(t, metrics, "weir_open_transaction_records")
			age := gauge(t, metrics, "weir_open_transaction_age_seconds")
			return lag == open && held == open && (age > 0.5) == aged, fmt.Sprint("lag ", lag, ", held back ", held, " for ", age, " s")
		})
	}
	await("the open transaction in the metrics", 32, true)
	b.expect(30)
	b.awaitReady(b.processor)
	if err := hung.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	b.expect(60)
	await("no open transaction in the metrics", 0, false)
}
