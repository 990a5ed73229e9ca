package pipeline

import (
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// The load is high after several full batches since the last look, and low after several looks
// without any.
func TestLoad(t *testing.T) {
	t.Parallel()
	l := newLoad()
	for i, step := range []struct {
		full         int
		much, little bool
	}{
		{0, false, false},
		{0, false, false},
		{1, false, false},
		{7, false, false},
		{8, true, false},
		{0, false, false},
		{0, false, false},
		{0, false, false},
		{0, false, false},
		{0, false, true},
		{0, false, true},
		{1, false, false},
		{8, true, false},
	} {
		for range step.full {
			l.add(newBatch(), true)
		}
		l.add(newBatch(), false)
		if _, much, little := l.look(); much != step.much || little != step.little {
			t.Errorf("look %d finds much load: %v, little: %v; want %v and %v", i, much, little, step.much, step.little)
		}
	}
}

// Records are counted by partition, whatever became of them, and each look begins anew.
func TestRecordsAreCountedByPartition(t *testing.T) {
	t.Parallel()
	l, a, b := newLoad(), state.Partition{Topic: "a"}, state.Partition{Topic: "b"}
	for range 2 {
		batch := newBatch()
		of := batch.rangeOf(&assignedPartition{Partition: a})
		batch.outcomes[counted{of, outcome{"s", outcomeApplied}}] = 3
		batch.outcomes[counted{of, outcome{"s", outcomeDead}}] = 4
		batch.outcomes[counted{batch.rangeOf(&assignedPartition{Partition: b}), outcome{"s", outcomeApplied}}] = 5
		l.add(batch, false)
	}
	for _, want := range []map[state.Partition]int64{{a: 14, b: 10}, {}} {
		if got, _, _ := l.look(); !maps.Equal(got, want) {
			t.Errorf("%v records were counted, want %v", got, want)
		}
	}
}

// One batch of the default size that is full makes the load high, as eight of a tenth of it do.
func TestFullBatchesCountByTheirSize(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		events, bytes int
		want          int64
	}{{2, 100, 1}, {2000, 500_000, 1}, {20_000, 5 << 20, 10}, {900, 16 << 20, 4}} {
		if got := fullness(c.events, c.bytes); got != c.want {
			t.Errorf("a full batch of %d events and %d bytes counts as %d batches, want %d", c.events, c.bytes, got, c.want)
		}
	}
	l := newLoad()
	l.add(&workerBatch{events: 20_000, bytes: 5 << 20}, true)
	if _, much, _ := l.look(); !much {
		t.Error("a full batch of 20,000 events does not make the load high")
	}
}

// poolOf is a pool whose workers have some partitions and do nothing.
func poolOf(t *testing.T, workers int, of map[state.Partition]int) *pool {
	s := &pool{
		p: &Processor{health: newHealth(), log: slog.New(slog.DiscardHandler)}, ctx: t.Context(),
		load: make([]int, workers), of: of, recentLoad: newLoad(),
	}
	for range workers {
		poller := fetch.NewPoller(fetch.PollerConfig{})
		t.Cleanup(poller.Close)
		s.workers = append(s.workers, &worker{changes: make(chan change, 100), poller: poller})
	}
	for _, i := range of {
		s.load[i]++
	}
	return s
}

// An unavailable store does not count as low load.
func TestPartitionsStayWhileUnhealthy(t *testing.T) {
	t.Parallel()
	s := poolOf(t, 2, map[state.Partition]int{{Topic: "a"}: 0, {Topic: "b"}: 1})
	s.recentLoad.calm = calmLooks
	s.p.health.set("worker 1", errors.New("no Redis"))
	if s.balance(time.Millisecond); !slices.Equal(s.load, []int{1, 1}) {
		t.Errorf("while one worker cannot apply, the workers process %v partitions, want one each", s.load)
	}
	s.p.health.clear("worker 1")
	if s.balance(time.Millisecond); !slices.Equal(s.load, []int{2, 0}) {
		t.Errorf("the workers process %v partitions, want both at the first worker", s.load)
	}
}

// Partitions are spread by their records when batches are full, and again only after some looks.
func TestPartitionsAreSpreadByTheirRecords(t *testing.T) {
	t.Parallel()
	a, b, c, d := state.Partition{Topic: "a"}, state.Partition{Topic: "b"}, state.Partition{Topic: "c"}, state.Partition{Topic: "d"}
	s := poolOf(t, 2, map[state.Partition]int{a: 0, b: 1, c: 0, d: 1})
	look := func(full bool, hot ...state.Partition) {
		for _, id := range hot {
			batch := newBatch()
			batch.events = 20_000
			r := batch.rangeOf(&assignedPartition{Partition: id})
			batch.outcomes[counted{r, outcome{"s", outcomeApplied}}] = 15_000
			batch.outcomes[counted{r, outcome{"s", outcomeLate}}] = 5_000
			s.recentLoad.add(batch, full)
		}
		s.balance(time.Millisecond)
	}
	expect := func(when string, want map[state.Partition]int) {
		t.Helper()
		if !maps.Equal(s.of, want) {
			t.Errorf("%s: the workers are %v, want %v", when, s.of, want)
		}
	}
	look(false, a, c)
	expect("no batch is full", map[state.Partition]int{a: 0, b: 1, c: 0, d: 1})
	look(true, a, c)
	spread := map[state.Partition]int{a: 0, b: 1, c: 1, d: 1}
	expect("two of one worker are hot", spread)
	for range looksBetweenSpreads {
		look(true, b, c)
		expect("soon after", spread)
	}
	look(true, b, c)
	expect("some looks later", map[state.Partition]int{a: 0, b: 1, c: 0, d: 1})
}

// While there is a backlog, what is left of it counts: it shows which partitions are hot, however much was fetched.
func TestBacklogIsDemand(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Embedded(t, map[string]int{"payments": 1})
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.ListenAddrs()...), kgo.DefaultProduceTopic("payments"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for range 7 { // record batches
		if err := client.ProduceSync(t.Context(), &kgo.Record{Value: []byte("v")}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...), PartitionMaxBytes: 1})
	defer poller.Close()
	long, short, idle := state.Partition{Topic: "payments"}, state.Partition{Topic: "logins"}, state.Partition{Topic: "idle"}
	s := poolOf(t, 1, map[state.Partition]int{long: 0, short: 0, idle: 0})
	s.workers[0].poller = poller
	poller.Add("payments", 0, 0)
	if _, err := poller.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := s.demand(map[state.Partition]int64{long: 100, short: 50, idle: 0, {Topic: "released"}: 10})
	if want := (map[state.Partition]int64{long: 106, short: 50}); !maps.Equal(got, want) {
		t.Errorf("with one of seven records taken, the demand is %v, want %v", got, want)
	}
}

// spreadCase is a demand, and which workers have the partitions.
type spreadCase struct {
	workers int
	of      []int // by partition
	demand  []int64
}

func (c spreadCase) spread() (to map[state.Partition]int, of []int) {
	was, demand := make(map[state.Partition]int), make(map[state.Partition]int64)
	for i, worker := range c.of {
		id := state.Partition{Topic: "t", ID: int32(i)}
		was[id] = worker
		if c.demand[i] > 0 {
			demand[id] = c.demand[i]
		}
	}
	to = spread(demand, was, c.workers)
	maps.Copy(was, to)
	for i := range c.of {
		of = append(of, was[state.Partition{Topic: "t", ID: int32(i)}])
	}
	return to, of
}

// busiest returns the demand of the worker that has most.
func (c spreadCase) busiest(of []int) int64 {
	demand := make([]int64, c.workers)
	for i, worker := range of {
		demand[worker] += c.demand[i]
	}
	return slices.Max(demand)
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		spreadCase
		want []int
	}{
		"even":                               {spreadCase{2, []int{0, 1, 0, 1}, []int64{5, 5, 5, 5}}, []int{0, 1, 0, 1}},
		"two hot ones part":                  {spreadCase{2, []int{0, 1, 0, 1}, []int64{60, 10, 40, 10}}, []int{0, 1, 1, 1}},
		"one hot one stays alone":            {spreadCase{2, []int{0, 1, 0, 1}, []int64{60, 10, 20, 10}}, []int{0, 1, 1, 1}},
		"a small gain is not worth it":       {spreadCase{2, []int{0, 1, 0, 1}, []int64{60, 30, 14, 10}}, []int{0, 1, 0, 1}},
		"what has nothing stays":             {spreadCase{3, []int{0, 0, 0, 2, 2}, []int64{9, 0, 9, 0, 0}}, []int{0, 0, 1, 2, 2}},
		"one worker has all":                 {spreadCase{2, []int{1, 1, 1}, []int64{5, 5, 5}}, []int{1, 0, 1}},
		"one partition is nearly everything": {spreadCase{2, []int{1, 1, 1}, []int64{90, 5, 5}}, []int{1, 1, 1}},
		"nothing to do":                      {spreadCase{2, []int{0, 0}, []int64{0, 0}}, []int{0, 0}},
	} {
		if _, got := test.spread(); !slices.Equal(got, test.want) {
			t.Errorf("%s: the workers are %v, want %v", what, got, test.want)
		}
	}
}

// For any demand, partitions move only if that is worth it, no worker then has much more than need be, and the next
// look moves nothing.
func TestSpreadOfAnyDemand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := spreadCase{workers: rapid.IntRange(1, 5).Draw(t, "workers")}
		total, hottest := int64(0), int64(0)
		for range rapid.IntRange(0, 12).Draw(t, "partitions") {
			c.of = append(c.of, rapid.IntRange(0, c.workers-1).Draw(t, "worker"))
			n := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1000)).Draw(t, "demand")
			c.demand = append(c.demand, n)
			total, hottest = total+n, max(hottest, n)
		}
		to, of := c.spread()
		before, after := c.busiest(c.of), c.busiest(of)
		for id, worker := range to {
			if c.of[id.ID] == worker || c.demand[id.ID] == 0 {
				t.Fatalf("%v moves from worker %d to %d with a demand of %d", id, c.of[id.ID], worker, c.demand[id.ID])
			}
		}
		if len(to) > 0 && after*5 > before*4 {
			t.Fatalf("partitions move although the busiest worker has %d instead of %d", after, before)
		}
		// The last partition of the busiest worker found it with no more than the mean.
		if least := total/int64(c.workers) + hottest; after > least && before*4 > least*5 {
			t.Fatalf("the busiest worker has %d of %d, the hottest partition %d", after, total, hottest)
		}
		if again, _ := (spreadCase{c.workers, of, c.demand}).spread(); len(again) > 0 {
			t.Fatalf("the next look moves %v again", again)
		}
	})
}
