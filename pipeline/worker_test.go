package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Records that were fetched before their partition is rewound are dropped: they would move the progress past the
// records in between.
func TestRecordsFetchedBeforeRewindAreDropped(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{
		Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport, RequiredAcks: kafka.RequireAll,
	}
	defer writer.Close()
	if err := writer.WriteMessages(ctx, make([]kafka.Message, 10)...); err != nil {
		t.Fatal(err)
	}
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
	defer poller.Close()
	p := &assignedPartition{phase: reading, Partition: state.Partition{Topic: "payments"}, position: 8}
	w := &worker{
		poller: poller, current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()),
		partitions: map[state.Partition]*assignedPartition{p.Partition: p},
	}
	accept := func() {
		t.Helper()
		part, err := poller.Poll(ctx)
		if err := w.accept(ctx, part, err); err != nil {
			t.Fatal(err)
		}
	}
	poller.Add("payments", 0, 8)
	accept()
	w.abandon(p)
	if w.fetched != nil {
		t.Error("the records from offset 8 were kept, although offset 3 comes next")
	}
	p.position = 3
	poller.Add("payments", 0, 3)
	accept()
	if w.fetched == nil || w.fetched.Offset != 3 {
		t.Error("the batch lacks the records from offset 3")
	}
}

// A batch with records of a partition from before it was resumed gets no second range of it: both ranges would find the
// same progress, and records would count twice.
func TestBatchHasOneRangeOfAPartition(t *testing.T) {
	t.Parallel()
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, position: 8, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
	other := &assignedPartition{Partition: state.Partition{Topic: "logins"}, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
	w := &worker{
		cfg: &Config{MaxEvents: 10, MaxBytes: 10}, recentLoad: newLoad(), current: newBatch(), other: newBatch(), due: true,
		applier:    &applier{todo: make(chan *workerBatch, 1)},
		partitions: map[state.Partition]*assignedPartition{p.Partition: p, other.Partition: other},
	}
	w.current.rangeOf(p)
	w.current.keep(p)
	if !w.full() || !w.ready() {
		t.Error("the batch is not full and ready, want it to take no more records")
	}
	w.submit()
	b := <-w.applier.todo
	if len(b.Ranges) != 2 || b.partitions[0] != p || b.partitions[1] != other {
		t.Errorf("unexpected ranges %+v", b.Ranges)
	}
	b.reset()
	if w.current.rangeOf(p); b.kept != nil || w.full() {
		t.Error("the next batch takes no records")
	}
}

// At shutdown, the batch after a failed one must not skip the records of the failed one.
func TestLastBatchSkipsNothing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		end  func(under *workerBatch)
		want []string
	}{
		{"all is applied", func(*workerBatch) {}, []string{"payments/0", "logins/0"}},
		{"dead letters are not written", func(b *workerBatch) { b.fail(0, errors.New("no broker")) }, []string{"logins/0"}},
		{"the store went back in time", func(b *workerBatch) { b.Ranges[0].Behind = true }, []string{"logins/0"}},
		{"the store is away", func(b *workerBatch) { b.unapplied = true }, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			poller := fetch.NewPoller(fetch.PollerConfig{Transport: &kafka.Transport{}})
			defer poller.Close()
			p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, position: 8, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
			other := &assignedPartition{Partition: state.Partition{Topic: "logins"}, position: 5, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
			w := &worker{
				cfg: &Config{MaxEvents: 10, MaxBytes: 10}, recentLoad: newLoad(), poller: poller, live: &backfill.Live{}, current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()),
				applier:    &applier{todo: make(chan *workerBatch, 1), done: make(chan *workerBatch, 2)},
				partitions: map[state.Partition]*assignedPartition{p.Partition: p, other.Partition: other},
				commit:     func(map[state.Partition]int64) {},
			}
			under := newBatch()
			under.rangeOf(p)
			under.rangeOf(other)
			w.other, w.applying = under, true
			w.current.rangeOf(p)
			w.current.rangeOf(other)
			test.end(under)
			w.applier.done <- under
			var got []string
			go func() {
				b := <-w.applier.todo
				for i, r := range b.Ranges {
					if !r.Behind {
						got = append(got, b.partitions[i].String())
					}
				}
				w.applier.done <- b
			}()
			w.flush()
			if !slices.Equal(got, test.want) {
				t.Errorf("the last batch has %v, want %v", got, test.want)
			}
		})
	}
}

// Everything fetched goes into one batch, also from several answers, as far as there is room. The batch is then
// applied, or grows while the previous one is applied.
func TestBatchTakesAllThatWasFetched(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{"payments": 3})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{
		Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport, RequiredAcks: kafka.RequireAll,
		Balancer: &kafka.RoundRobin{},
	}
	defer writer.Close()
	messages := make([]kafka.Message, 12)
	for i := range messages {
		messages[i].Value = []byte(`{"at": 1, "user": "u"}`)
	}
	if err := writer.WriteMessages(t.Context(), messages...); err != nil {
		t.Fatal(err)
	}
	registry := defined.Registry(t, "streams:\n  payment: {topic: payments, timestamp: at, fields: {user: string}}\n")
	for _, test := range []struct {
		name      string
		maxEvents int
		want      []int // records of the batches
	}{{"all fits", 100, []int{12}}, {"two batches are full", 5, []int{5, 5, 2}}} {
		t.Run(test.name, func(t *testing.T) {
			poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...), MaxWaiting: 10})
			defer poller.Close()
			w := &worker{
				cfg: &Config{MaxEvents: test.maxEvents, MaxBytes: 1 << 20}, recentLoad: newLoad(), poller: poller, live: &backfill.Live{}, current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()),
				applier:    &applier{todo: make(chan *workerBatch, 1)},
				partitions: map[state.Partition]*assignedPartition{}, mapper: registry.NewMapper(),
			}
			w.mapper.MaxRecordBytes = 1 << 10
			for i := range int32(3) {
				id := state.Partition{Topic: "payments", ID: i}
				w.partitions[id] = &assignedPartition{Partition: id, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
				poller.Add(id.Topic, i, 0)
			}
			testkit.Eventually(t, time.Minute, "all partitions are fetched", func() (bool, string) {
				return len(poller.Troubles()) == 0, ""
			})
			for i, want := range test.want {
				if err := w.fill(t.Context()); err != nil {
					t.Fatal(err)
				}
				if w.applying = true; w.ready() {
					t.Error("a batch is ready while the previous one is being applied")
				}
				if w.other, w.applying = newBatch(), false; !w.ready() {
					t.Errorf("batch %d is not ready although it has all records that were fetched", i)
				}
				w.submit()
				if b := <-w.applier.todo; b.events != want {
					t.Errorf("batch %d has %d events, want %d", i, b.events, want)
				}
			}
			if err := w.fill(t.Context()); err != nil || !w.applying || w.current.events > 0 {
				t.Errorf("%d more events (%v), want none", w.current.events, err)
			}
			if w.other, w.applying = newBatch(), false; w.ready() {
				t.Error("an empty batch is ready")
			}
		})
	}
}

// newMappingWorker returns a worker that maps records of a partition of payments.
func newMappingWorker(t *testing.T) *worker {
	registry := defined.Registry(t, "streams:\n  payment: {topic: payments, timestamp: at, fields: {user: string}}\n")
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
	w := &worker{
		cfg: &Config{}, current: newBatch(), live: &backfill.Live{}, mapping: mapping{from: p}, mapper: registry.NewMapper(),
	}
	w.mapper.MaxRecordBytes = 1 << 10
	return w
}

// The newest timestamp that a worker remembers is bounded by the clock, so a wrong one does not stay forever.
func TestNewestTimestampIsBounded(t *testing.T) {
	t.Parallel()
	w := newMappingWorker(t)
	w.mapRecord(&fetch.Record{Timestamp: 4_000_000_000_000, Value: []byte(`{"at": 3999999999999, "user": "u"}`)})
	if most := w.current.began.Add(state.MaxAhead).UnixMilli(); len(w.current.dead) > 0 || w.newest != most {
		t.Errorf("the newest timestamp is %d, want %d", w.newest, most)
	}
}

// A record that is set aside says where its partition is, and does not make anything be pruned.
func TestWhereARecordIsThatIsSetAside(t *testing.T) {
	t.Parallel()
	w := newMappingWorker(t)
	w.mapRecord(&fetch.Record{Timestamp: 1000, Value: []byte("?")})
	if got := w.unapplied(); len(w.current.dead) != 1 || got[w.from] != 1000 || w.newest != 0 {
		t.Errorf("%d records are set aside, unapplied from %v on; the newest one is of %d", len(w.current.dead), got, w.newest)
	}
}

// A batch counts as live from its first record until it is complete.
func TestBatchesWithRecordsAreLive(t *testing.T) {
	t.Parallel()
	registry := defined.Registry(t, "streams:\n  payment: {topic: payments, timestamp: at, fields: {user: string}}\n")
	w := &worker{
		cfg: &Config{MaxEvents: 10, MaxBytes: 1000}, recentLoad: newLoad(), live: &backfill.Live{}, mapper: registry.NewMapper(), current: newBatch(), other: newBatch(),
		mapping: mapping{from: &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, lease: lease{progress: make([]state.Position, 1)}}},
		applier: &applier{todo: make(chan *workerBatch, 1)},
	}
	w.mapper.MaxRecordBytes = 1 << 10
	isQuiet := func() bool {
		select {
		case <-w.live.Quiet():
			return true
		default:
			return false
		}
	}
	w.submit()
	empty := <-w.applier.todo
	if w.complete(t.Context(), empty); !isQuiet() {
		t.Error("a batch without records is live")
	}
	for range 2 {
		w.mapRecord(&fetch.Record{Timestamp: 1, Value: []byte(`{"at": 1, "user": "u"}`)})
	}
	w.submit()
	b := <-w.applier.todo
	if isQuiet() {
		t.Error("a batch is not live while it is applied")
	}
	if w.complete(t.Context(), b); !isQuiet() {
		t.Error("a batch is live after it is complete")
	}
}

// The first batches may be about to come when a processor begins, so its fills give way from the start.
func TestFillsBeginBesideLiveEvents(t *testing.T) {
	t.Parallel()
	if p := New(Config{}); reflect.DeepEqual(p.live, &backfill.Live{}) {
		t.Error("fills begin as in a process without live events")
	}
}

// headerFormat is a format that reads only keys and headers.
type headerFormat struct{ key, header string }

func (f *headerFormat) String() string                         { return "headers" }
func (f *headerFormat) Check([]string, value.Type) error       { return nil }
func (f *headerFormat) NewScanner(*record.Node) record.Scanner { return f }
func (f *headerFormat) Scan(rec *record.Record, _ []record.Datum) error {
	header, _ := rec.Headers.Last("schema")
	f.key, f.header = string(rec.Key), string(header)
	return &record.Poison{Reason: record.Malformed, Message: "no record of any stream"}
}

// A format gets the record's key and headers, and its poison is a dead letter of its stream.
func TestFormatSeesKeyAndHeaders(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	writer := kafka.Writer{Addr: kafka.TCP(broker.ListenAddrs()...), Topic: "payments", Transport: transport}
	defer writer.Close()
	err := writer.WriteMessages(t.Context(), kafka.Message{
		Key: []byte("k"), Value: []byte("v"), Headers: []kafka.Header{{Key: "schema", Value: []byte("1")}, {Key: "schema", Value: []byte("2")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	registry := defined.Registry(t, "streams:\n  payment: {topic: payments, timestamp: at, fields: {user: string}}\n")
	format := &headerFormat{}
	registry.Streams[0].Format = format
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, lease: lease{progress: make([]state.Position, 1)}}
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...)})
	defer poller.Close()
	poller.Add("payments", 0, 0)
	w := &worker{
		cfg: &Config{MaxEvents: 10, MaxBytes: 1000}, recentLoad: newLoad(), poller: poller, live: &backfill.Live{}, current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()),
		partitions: map[state.Partition]*assignedPartition{p.Partition: p}, mapper: registry.NewMapper(),
	}
	fetched, err := poller.Poll(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.accept(t.Context(), fetched, nil); err != nil {
		t.Fatal(err)
	}
	w.mapFetched()
	if format.key != "k" || format.header != "2" {
		t.Errorf("the format saw key %q and header %q", format.key, format.header)
	}
	if len(w.current.dead) != 1 || w.current.dead[0].reason != record.Malformed || w.current.dead[0].stream != "payment" {
		t.Errorf("unexpected dead letters %+v", w.current.dead)
	}
}

// What was under way when a partition was resumed changes nothing of it: neither a batch nor what recovery found.
func TestEarlierLeasesAreIgnored(t *testing.T) {
	t.Parallel()
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, position: 8, applied: 5, phase: reading, lease: lease{progress: make([]state.Position, 1)}, trouble: retry.Trouble{Log: slog.New(slog.DiscardHandler)}}
	w := &worker{
		poller: fetch.NewPoller(fetch.PollerConfig{Transport: &kafka.Transport{}}), current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()), health: newHealth(),
		partitions: map[state.Partition]*assignedPartition{p.Partition: p}, commit: func(map[state.Partition]int64) {},
	}
	defer w.poller.Close()
	under := newBatch()
	under.fail(under.rangeOf(p), errors.New("no broker"))
	found := resumed{[]*assignedPartition{p}, []int{p.lease.number}, []recovery.Resumption{{Err: errors.New("no leader")}}}
	w.move(p, resuming)
	number := p.lease.number
	w.recovered(t.Context(), found)
	w.complete(t.Context(), under)
	if p.lease.number != number || p.applied != 5 || p.phase != resuming || w.health.err() != nil {
		t.Errorf("the partition is %+v, health %v; want it as it was", p, w.health.err())
	}
}

// After the store went back in time, nothing is pruned by records that it may not have any more, nor noted as its newest: only those
// count that are still to be applied.
func TestNothingIsPrunedByWhatWasLost(t *testing.T) {
	t.Parallel()
	const grace = time.Minute
	w := &worker{current: newBatch(), metrics: newMetrics(prometheus.NewRegistry()), newest: 900, pruning: pruning{grace: grace, known: 700, coming: 800}}
	for i, greatest := range []int64{300, 600} {
		p := &assignedPartition{Partition: state.Partition{Topic: "payments", ID: int32(i)}}
		w.current.spans[w.current.rangeOf(p)] = span{100, greatest}
		if i == 1 {
			w.current.drop(p)
			w.rewound(p)
		}
	}
	if w.newest != 300 || w.pruning != (pruning{grace: grace}) {
		t.Errorf("the newest record is of %d and pruning is %+v", w.newest, w.pruning)
	}
}
