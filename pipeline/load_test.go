package pipeline

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
)

// Much is several full batches since the last look, little is none for several looks.
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
			t.Errorf("look %d finds much: %v, little: %v", i, much, little)
		}
	}
}

// What is not applied as the store is away is not little to do.
func TestPartitionsStayWhileSomethingIsWrong(t *testing.T) {
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
		t.Errorf("the workers carry %v partitions while one cannot apply, want one each", s.load)
	}
	s.p.health.clear("worker 1")
	if s.balance(time.Millisecond); !slices.Equal(s.load, []int{2, 0}) {
		t.Errorf("the workers carry %v partitions, want the first to carry both", s.load)
	}
}
