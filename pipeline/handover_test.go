package pipeline_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// lasting is how long a rebalance may take: longer than the test.
const lasting = 10 * time.Minute

// idle is a member of the group that processes nothing. While it does not call Next, a rebalance
// does not finish.
func (b *bench) idle(topic string) *group.Member {
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond}
	b.t.Cleanup(transport.CloseIdleConnections)
	m := group.New(group.Config{
		Transport: transport, Bootstrap: kafka.TCP(b.config.Brokers...), Group: b.config.Group, Topics: []string{topic},
		Release:        func([]state.Partition) {},
		SessionTimeout: lasting, RebalanceTimeout: lasting, HeartbeatInterval: 50 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	b.t.Cleanup(func() { _ = m.Leave(context.Background()) })
	return m
}

// joinUntil joins repeatedly until a member has that many partitions.
func joinUntil(t *testing.T, m *group.Member, n int) *group.Generation {
	t.Helper()
	for {
		g, err := m.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(g.Partitions) == n {
			return g
		}
		<-g.Done()
	}
}

// gaps measures the pauses of partitions, from one batch with their events to the next.
type gaps struct {
	mu      sync.Mutex
	last    map[int32]time.Time
	longest map[int32]time.Duration
}

type gapsWriter struct {
	store.Writer
	gaps *gaps
}

func (w gapsWriter) Apply(ctx context.Context, b *state.Batch) error {
	err := w.Writer.Apply(ctx, b)
	w.gaps.mu.Lock()
	defer w.gaps.mu.Unlock()
	now := time.Now()
	for i := range b.Updates {
		id := b.Ranges[b.Updates[i].Range].Partition.ID
		if last, ok := w.gaps.last[id]; ok {
			w.gaps.longest[id] = max(w.gaps.longest[id], now.Sub(last))
		}
		w.gaps.last[id] = now
	}
	return err
}

// While the group rebalances, even for long, the partitions that stay with a processor are applied.
func TestPartitionsAreAppliedDuringARebalance(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	const partitions = 6
	b, topic := newKafkaBench(t, broker, partitions)
	b.config.HeartbeatInterval, b.config.SessionTimeout, b.config.RebalanceTimeout = 50*time.Millisecond, lasting, lasting
	lines := newLogLines(t)
	b.config.Logger = slog.New(slog.NewTextHandler(lines, nil))
	measured := &gaps{last: map[int32]time.Time{}, longest: map[int32]time.Duration{}}
	b.config.Store = writing{b.store, func() store.Writer { return gapsWriter{b.store.NewWriter(), measured} }}
	b.run()
	client, n := producer(t, broker), 0
	// write writes an event to each of some partitions, and waits until all are applied.
	write := func(ids ...int32) {
		t.Helper()
		var records []*kgo.Record
		for _, id := range ids {
			m := payment(n)
			records = append(records, &kgo.Record{Topic: topic, Partition: id, Timestamp: m.Time, Value: m.Value})
			n++
		}
		if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		b.expect(n)
	}
	write(0, 1, 2, 3, 4, 5)

	// An idle member joins. Its partitions are no longer applied here, and the rest are.
	first := b.idle(topic)
	given := joinUntil(t, first, partitions/2)
	var kept []int32
	for id := range int32(partitions) {
		if !slices.Contains(given.Partitions, state.Partition{Topic: topic, ID: id}) {
			kept = append(kept, id)
		}
	}
	// Another one joins, and the first one delays the rebalance.
	rebalances := lines.count("the consumer group rebalances")
	joined := make(chan *group.Generation, 1)
	second := b.idle(topic)
	go func() {
		g, err := second.Next(t.Context())
		if err != nil {
			t.Error(err)
		}
		joined <- g
	}()
	testkit.Eventually(t, time.Minute, "the processor joins again", func() (bool, string) {
		return lines.count("the consumer group rebalances") > rebalances, ""
	})
	measured.mu.Lock()
	clear(measured.last)
	clear(measured.longest)
	measured.mu.Unlock()
	for range 100 {
		write(kept...)
	}
	select {
	case <-joined:
		t.Fatal("the rebalance ended before the first idle member had left")
	default:
	}
	if err := first.Leave(t.Context()); err != nil { // all of its partitions are free
		t.Fatal(err)
	}
	if g := <-joined; len(g.Partitions) != partitions/2 {
		t.Errorf("the second idle member was given %v, want half of the partitions", g.Partitions)
	}
	write(kept...)
	for _, id := range kept {
		measured.mu.Lock()
		t.Logf("partition %d: the longest gap is %v", id, measured.longest[id])
		if measured.longest[id] > 30*time.Second { // milliseconds, if the machine is not busy
			t.Errorf("partition %d was not applied for %v", id, measured.longest[id])
		}
		measured.mu.Unlock()
	}
	if s := b.processor.Stats(); s.Assigned != partitions/2 {
		t.Errorf("%d partitions are assigned, want %d", s.Assigned, partitions/2)
	}
}

// While the group's coordinator is unavailable, the assigned partitions are still processed, and the processor's
// readiness says what is wrong.
func TestGroupUnavailable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.config.HeartbeatInterval, b.config.SessionTimeout = 20*time.Millisecond, 6*time.Second
	b.config.Logger = slog.New(slog.DiscardHandler) // each commit that fails is a line
	b.run()
	b.write(payments(0, 30)...)
	b.expect(30)
	back := b.loseGroup()
	testkit.Eventually(t, time.Minute, "the processor degraded", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		part, ok := err.(interface{ Degraded() bool })
		return ok && part.Degraded() && strings.Contains(err.Error(), "the assigned partitions go on"), fmt.Sprint(err)
	})
	b.write(payments(30, 60)...)
	b.expect(60)
	back()
	testkit.Eventually(t, time.Minute, "the processor ready", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		return err == nil, fmt.Sprint(err)
	})
	b.write(payments(60, 90)...)
	b.expect(90)
}

// loseGroup makes the broker deny that it is the group's coordinator; back undoes it.
func (b *bench) loseGroup() (back func()) {
	var away atomic.Bool
	away.Store(true)
	refuse := func(code kafka.Error, with func(kmsg.Response, int16)) func(kmsg.Request) (kmsg.Response, error, bool) {
		return func(r kmsg.Request) (kmsg.Response, error, bool) {
			b.broker.KeepControl()
			if !away.Load() {
				return nil, nil, false
			}
			response := r.ResponseKind()
			response.SetVersion(r.GetVersion())
			with(response, int16(code))
			return response, nil, true
		}
	}
	b.broker.ControlKey(int16(kmsg.FindCoordinator), refuse(kafka.GroupCoordinatorNotAvailable, func(r kmsg.Response, code int16) {
		r.(*kmsg.FindCoordinatorResponse).ErrorCode = code
	}))
	b.broker.ControlKey(int16(kmsg.Heartbeat), refuse(kafka.NotCoordinatorForGroup, func(r kmsg.Response, code int16) {
		r.(*kmsg.HeartbeatResponse).ErrorCode = code
	}))
	return func() { away.Store(false) }
}
