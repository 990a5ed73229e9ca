package pipeline_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

// logLines collects the log.
type logLines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// newLogLines returns a log that shows its last lines if the test fails.
func newLogLines(t *testing.T) *logLines {
	l := &logLines{}
	t.Cleanup(func() {
		if t.Failed() {
			l.mu.Lock()
			defer l.mu.Unlock()
			const most = 8000
			text := l.text.String()
			t.Logf("the log ends:\n%s", text[max(0, len(text)-most):])
		}
	})
	return l
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// count returns how many lines contain a text.
func (l *logLines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// expectStopped waits until the processor has tried a broken batch several times, and checks that it reports it all the
// time and logs it once.
func (b *bench) expectStopped(metrics *prometheus.Registry, lines *logLines, want string) {
	b.t.Helper()
	stopped := false
	testkit.Eventually(b.t, time.Minute, "tries to get past the batch", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		says := err != nil && strings.Contains(err.Error(), want)
		if stopped && !says {
			b.t.Errorf("after the partition had stopped, readiness reports %v", err)
		}
		stopped = stopped || says
		tries := count(b.t, metrics, "weir_broken_batches_total")
		return stopped && tries >= 4, fmt.Sprint(tries, " tries; ready: ", err)
	})
	if n := lines.count("processing the partition"); n != 1 {
		b.t.Errorf("%d log lines about the partition, want 1:\n%s", n, lines.text.String())
	}
}

// expectNotReadAgain waits until all shards, also those without events, have applied everything before the broken
// batch, and checks that it is not read again for each try.
func (b *bench) expectNotReadAgain(metrics *prometheus.Registry, topic string, before int64) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "all shards are at the broken batch", func() (bool, string) {
		progress, err := b.store.Progress(b.t.Context(), []state.Partition{{Topic: topic}})
		return err == nil && state.Lowest(progress[0]) == before && state.Highest(progress[0]) == before, fmt.Sprint(progress, err)
	})
	const tries, events = "weir_broken_batches_total", "weir_events_total"
	since := count(b.t, metrics, tries)
	await := func(n float64) {
		testkit.Eventually(b.t, time.Minute, "more tries", func() (bool, string) { return count(b.t, metrics, tries) >= since+n, "" })
	}
	await(1) // one that was under way may have read them
	read := count(b.t, metrics, events)
	await(2)
	if again := count(b.t, metrics, events) - read; again != 0 {
		b.t.Errorf("%v events were read again by a retry, want none", again)
	}
}

// expectSetAside waits until the batch of offsets first to last is a dead letter and its offsets
// are a gap of the history.
func (b *bench) expectSetAside(topic string, first, last int, began int64, message string) {
	b.t.Helper()
	letter := b.readDead(1)[0]
	for key, want := range map[string]string{
		"weir-reason": "broken_batch", "weir-topic": topic, "weir-partition": "0", "weir-stream": "",
		"weir-offset": fmt.Sprint(first), "weir-last-offset": fmt.Sprint(last),
	} {
		if got := header(letter, key); got != want {
			b.t.Errorf("the dead letter's %s is %q, want %q", key, got, want)
		}
	}
	if got := header(letter, "weir-message"); !strings.Contains(got, message) {
		b.t.Errorf("the dead letter's message is %q, want it to contain %q", got, message)
	}
	if since := b.since(b.registry, "paid"); since < began || since == state.MaxTime {
		b.t.Errorf("complete since %d, although a batch was skipped after %d", since, began)
	}
	testkit.Eventually(b.t, time.Minute, "readiness", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err == nil, fmt.Sprint(err)
	})
	if n := len(b.processor.DeadLetters()); n != 1 {
		b.t.Errorf("%d dead letters are listed, want 1", n)
	}
}

// stoppedThenSetAside reads a topic whose second batch, with offsets 10 to last, cannot be decoded. The payments 0 to
// 29 are before and after it.
func (b *bench) stoppedThenSetAside(topic string, last int, reason string, damaged bool) {
	b.t.Helper()
	b.config.SetBrokenAside, b.config.SetDamagedAside = damaged, !damaged // neither is for the other
	metrics, lines := prometheus.NewRegistry(), newLogLines(b.t)
	b.config.Metrics, b.config.Logger = metrics, slog.New(slog.NewTextHandler(lines, nil))
	b.run()
	b.expect(10)
	b.expectStopped(metrics, lines, fmt.Sprintf("%s/0: the batch of offsets 10 to %d cannot be decoded: %s", topic, last, reason))
	b.expectNotReadAgain(metrics, topic, 10)
	if since := b.since(b.registry, "paid"); since != state.MinTime {
		b.t.Errorf("complete since %d before anything was skipped, want since always", since)
	}
	if lag := gauge(b.t, metrics, "weir_lag_records"); lag < float64(last+21-10) {
		b.t.Errorf("the lag is %v, want at least %d", lag, last+21-10)
	}
	if err := b.stop(); err != nil {
		b.t.Fatal(err)
	}
	began := time.Now().UnixMilli()
	b.config.SetBrokenAside, b.config.SetDamagedAside, b.config.Metrics = !damaged, damaged, nil
	b.run()
	b.expect(30)
	b.expectSetAside(topic, 10, last, began, reason)
}

// A batch that inflates beyond all bounds stops its partition, or is set aside.
func TestBatchBeyondInflationLimit(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	plain := producer(t, broker)
	bomber := producer(t, broker, kgo.ProducerBatchMaxBytes(100<<20), kgo.ProducerBatchCompression(kgo.GzipCompression()))
	produce(t, plain, topic, payments(0, 10)...)
	produce(t, bomber, topic, kafka.Message{Value: make([]byte, 65<<20)})
	produce(t, plain, topic, payments(10, 30)...)
	b.stoppedThenSetAside(topic, 10, "the batch inflates to more than the limit of 67108864 bytes", false)
}

// A partition that is stopped at a batch continues when it is placed after the batch, as its message says. It is ready
// although no record follows yet.
func TestPlacementBehindABrokenBatch(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	b, topic := newKafkaBench(t, broker, 1)
	plain := producer(t, broker)
	bomber := producer(t, broker, kgo.ProducerBatchMaxBytes(100<<20), kgo.ProducerBatchCompression(kgo.GzipCompression()))
	produce(t, plain, topic, payments(0, 3)...)
	produce(t, bomber, topic, kafka.Message{Value: make([]byte, 65<<20)})
	metrics, lines := prometheus.NewRegistry(), newLogLines(t)
	b.config.Metrics, b.config.Logger = metrics, slog.New(slog.NewTextHandler(lines, nil))
	// Commits are rarer than tries, so that they do not move the shards to the batch.
	b.config.CommitInterval = 500 * time.Millisecond
	b.run()
	b.expect(3)
	b.expectStopped(metrics, lines, fmt.Sprintf("to go on without it, run: weir progress set %s/0 --to 4 --yes, "+
		"or set kafka.on_broken_batch to set_aside, which writes a dead letter of it", topic))
	b.expectNotReadAgain(metrics, topic, 3)

	id := state.Partition{Topic: topic}
	progress, err := b.store.Progress(t.Context(), []state.Partition{id})
	if err != nil {
		t.Fatal(err)
	}
	placement := state.Placement{
		Partition: id.WithPlan(b.registry.Plan().Version), From: progress[0], To: slices.Clone(progress[0]), Partitions: 1, Gap: time.Now().UnixMilli(),
	}
	for shard := range placement.To {
		placement.To[shard].Offset = 4
	}
	if n, err := b.store.Place(t.Context(), placement); err != nil || n != len(placement.To) {
		t.Fatalf("placed %d shards, error %v", n, err)
	}
	testkit.Eventually(t, time.Minute, "readiness", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	if n := gauge(t, metrics, "weir_stopped_partitions"); n != 0 {
		t.Errorf("%v partitions are stopped, want none", n)
	}
	produce(t, plain, topic, payments(3, 20)...)
	b.expect(20)
}

// Batches that a disk has damaged stop their partition, or are set aside, also if the damage is to their offsets, which no
// checksum covers and by which brokers find them.
func TestDamagedBatch(t *testing.T) {
	states := func(offset int64) func(*testing.T, []byte) {
		return func(_ *testing.T, batch []byte) { binary.BigEndian.PutUint64(batch, uint64(offset)) }
	}
	misplaced := func(first, last int64) string {
		return fmt.Sprintf("misplaced batch: it states the offsets %d to %d, which no checksum covers, but ", first, last)
	}
	for name, test := range map[string]struct {
		damage func(t *testing.T, batch []byte)
		reason string
		lost   bool // the broker does not find it by its offset, so a process that was not there when it was met cannot tell
	}{
		"value": {damage: func(t *testing.T, batch []byte) {
			at := bytes.Index(batch, []byte(`"cents":5002`))
			if at < 0 {
				t.Fatal("the payment is not in the batch")
			}
			batch[at+len(`"cents":`)] = '9'
		}, reason: "checksum mismatch"},
		"offset of the next batch": {damage: states(15), reason: misplaced(15, 19) + "the batch after it begins at 15"},
		"offset after the end":     {damage: states(10 + 1<<20), reason: misplaced(1048586, 1048590) + "the batch after it begins at 15"},
		"offset of an earlier batch": {damage: states(3), lost: true,
			reason: "misplaced batch: one that states the offset 3 has the offsets 10 to 14, and the broker does not find it there"},
		"no offset": {damage: states(-5), lost: true,
			reason: "misplaced batch: one that states the offset -5 has the offsets 10 to 14, and the broker does not find it there"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			logs := t.TempDir()
			broker := kafkatest.New(t, kafkatest.Options{Dir: logs})
			b, topic := newKafkaBench(t, broker, 1)
			plain := producer(t, broker, kgo.ProducerBatchCompression(kgo.NoCompression()))
			produce(t, plain, topic, payments(0, 10)...)
			produce(t, plain, topic, payments(5_000, 5_005)...)
			produce(t, plain, topic, payments(10, 30)...)
			broker.Stop()
			segment := filepath.Join(logs, topic+"-0", "00000000000000000000.log")
			raw, err := os.ReadFile(segment)
			if err != nil {
				t.Fatal(err)
			}
			batch := raw
			for binary.BigEndian.Uint64(batch) != 10 {
				batch = batch[12+binary.BigEndian.Uint32(batch[8:]):]
			}
			test.damage(t, batch)
			if err := os.WriteFile(segment, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			broker.Start()
			if !test.lost {
				b.stoppedThenSetAside(topic, 14, test.reason, true)
				return
			}
			began := time.Now().UnixMilli()
			b.config.SetDamagedAside = true
			b.run()
			b.expect(30)
			b.expectSetAside(topic, 10, 14, began, test.reason)
		})
	}
}
