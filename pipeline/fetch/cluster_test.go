package fetch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// testTimeout bounds every wait of a test.
const testTimeout = time.Minute

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

// pollUntil reads from one partition until its position is end, and returns "offset:value" of the records.
func pollUntil(t testing.TB, p *Poller, end int64) []string {
	t.Helper()
	ctx := testContext(t)
	var d Decoder
	var all []string
	for {
		part, err := p.Poll(ctx)
		if err != nil {
			t.Fatalf("after %v: %v; %v", all, err, p.Troubles())
		}
		records, next, err := decode(&d, part)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, records...)
		part.Release()
		if next >= end {
			return all
		}
	}
}

// lockedBuffer collects a log.
type lockedBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *lockedBuffer) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

// onFetch calls f with each fetch request before the cluster handles it, until f returns false.
func onFetch(c *kfake.Cluster, f func(*kmsg.FetchRequest) bool) {
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		if !f(req.(*kmsg.FetchRequest)) {
			c.DropControl()
		}
		return nil, nil, false
	})
}

// fetchFrom is closed when a fetch from offset has reached the cluster.
func fetchFrom(c *kfake.Cluster, offset int64) <-chan struct{} {
	reached := make(chan struct{})
	onFetch(c, func(req *kmsg.FetchRequest) bool {
		if req.Topics[0].Partitions[0].FetchOffset != offset {
			return true
		}
		close(reached)
		return false
	})
	return reached
}

func await(t testing.TB, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-testContext(t).Done():
		t.Fatalf("timed out waiting for %s", what)
	}
}

// eventually waits for a condition that has no signal.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for ctx := testContext(t); !holds(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func forever(cfg *PollerConfig) { cfg.MaxWait = time.Hour }
