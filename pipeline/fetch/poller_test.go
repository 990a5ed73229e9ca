package fetch

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// testTimeout bounds every wait of a test.
const testTimeout = 20 * time.Second

func testContext(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

func newCluster(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func newClient(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{
		kgo.SeedBrokers(c.ListenAddrs()...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func produce(t testing.TB, cl *kgo.Client, records ...*kgo.Record) {
	t.Helper()
	if err := cl.ProduceSync(testContext(t), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

func numbered(topic string, partition int32, from, to int) []*kgo.Record {
	var records []*kgo.Record
	for i := from; i < to; i++ {
		records = append(records, &kgo.Record{Topic: topic, Partition: partition, Value: fmt.Append(nil, i)})
	}
	return records
}

func newPoller(t testing.TB, c *kfake.Cluster, change ...func(*PollerConfig)) *Poller {
	t.Helper()
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond, ClientID: "fetch-test"}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := PollerConfig{
		Transport: transport,
		Bootstrap: kafka.TCP(c.ListenAddrs()...),
		Logger:    slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	p := NewPoller(cfg)
	t.Cleanup(p.Close)
	return p
}

func TestPollManyPartitions(t *testing.T) {
	const partitions, each = 24, 50
	c := newCluster(t, kfake.NumBrokers(3), kfake.SeedTopics(partitions, "a", "b"))
	cl := newClient(t, c)
	p := newPoller(t, c)
	want := make(map[topicPartition]int)
	for _, topic := range []string{"a", "b"} {
		for i := range int32(partitions) {
			produce(t, cl, numbered(topic, i, 0, each)...)
			p.Add(topic, i, 0)
			want[topicPartition{topic, i}] = each
		}
	}
	ctx := testContext(t)
	var d Decoder
	var r Record
	got := make(map[topicPartition]int)
	for n := 0; n < 2*partitions*each; {
		part, err := p.Poll(ctx)
		if err != nil {
			t.Fatalf("after %d records: %v; %v", n, err, p.Troubles())
		}
		key := part.key()
		for d.Reset(part); ; n++ {
			ok, err := d.Next(&r)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
			if string(r.Value) != fmt.Sprint(got[key]) || r.Offset != int64(got[key]) {
				t.Fatalf("%v: record %d has value %s and offset %d", key, got[key], r.Value, r.Offset)
			}
			got[key]++
		}
		part.Release()
	}
	if troubles := p.Troubles(); len(troubles) != 0 {
		t.Errorf("troubles: %v", troubles)
	}
	if lag, known := p.Lag("a", 3); lag != 0 || !known {
		t.Errorf("a lag of %d (known: %v)", lag, known)
	}
}
