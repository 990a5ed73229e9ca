package pipeline

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// The load is high after several full batches since the last look, and low after several looks
// without any.
func TestLoad(t *testing.T) {
	var l load
	for i, step := range []struct {
		full         int64
		much, little bool
	}{
		{0, false, false},
		{0, false, false},
		{1, false, false},
		{8, false, false},
		{16, true, false},
		{16, false, false},
		{16, false, false},
		{16, false, false},
		{16, false, false},
		{16, false, true},
		{16, false, true},
		{17, false, false},
		{25, true, false},
	} {
		if much, little := l.look(step.full); much != step.much || little != step.little {
			t.Errorf("look %d finds much load: %v, little: %v; want %v and %v", i, much, little, step.much, step.little)
		}
	}
}

// One batch of the default size that is full makes the load high, as eight of a tenth of it do.
func TestFullBatchesCountByTheirSize(t *testing.T) {
	for _, c := range []struct {
		events, bytes int
		want          int64
	}{{2, 100, 1}, {2000, 500_000, 1}, {20_000, 5 << 20, 10}, {900, 16 << 20, 4}} {
		if got := fullness(c.events, c.bytes); got != c.want {
			t.Errorf("a full batch of %d events and %d bytes counts as %d batches, want %d", c.events, c.bytes, got, c.want)
		}
	}
	var l load
	if much, _ := l.look(fullness(20_000, 5<<20)); !much {
		t.Error("a full batch of 20,000 events does not make the load high")
	}
}

// An unavailable store does not count as low load.
func TestPartitionsStayWhileUnhealthy(t *testing.T) {
	of := map[state.Partition]int{{Topic: "a"}: 0, {Topic: "b"}: 1}
	s := &pool{
		p: &Processor{health: newHealth(), log: slog.New(slog.DiscardHandler)}, ctx: t.Context(),
		load: []int{1, 1}, of: of, lately: load{calm: littleCalm},
	}
	for range s.load {
		s.workers = append(s.workers, &worker{changes: make(chan change, 2)})
	}
	s.p.health.set("worker 1", errors.New("no Redis"))
	if s.balance(time.Millisecond); !slices.Equal(s.load, []int{1, 1}) {
		t.Errorf("while one worker cannot apply, the workers process %v partitions, want one each", s.load)
	}
	s.p.health.clear("worker 1")
	if s.balance(time.Millisecond); !slices.Equal(s.load, []int{2, 0}) {
		t.Errorf("the workers process %v partitions, want both at the first worker", s.load)
	}
}
