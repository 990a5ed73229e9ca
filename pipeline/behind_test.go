package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// away is a store whose masters do not answer.
type away struct{ store.Store }

var errAway = errors.New("it hangs")

func (away) Available(context.Context, int) error { return errAway }

// The backlog of lagging shards is known for as long as they lag, also if the partition is read again for other shards
// and these cannot be claimed.
func TestBacklogOfLaggingShardsIsRemembered(t *testing.T) {
	t.Parallel()
	w := &worker{cfg: &Config{Store: away{}}, log: slog.New(slog.DiscardHandler), health: newHealth()}
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, backlog: noBacklog, applied: 120}
	at := func(offsets ...int64) (list []state.Position) {
		for _, offset := range offsets {
			list = append(list, state.Position{Offset: offset})
		}
		return list
	}
	check := func(what string, behind, processed int64, health string) {
		t.Helper()
		got := ""
		if err := w.health.err(); err != nil {
			got = err.Error()
		}
		if p.backlog.from != behind || p.processed() != processed || got != health {
			t.Errorf("%s: behind %d, processed up to %d, %q; want %d, %d, %q", what, p.backlog.from, p.processed(), got, behind, processed, health)
		}
	}
	const lag = "payments/0: 2 state shards lag from offset 70 on, the others go on: it hangs"
	lagging := []bool{false, true, true}
	w.noteLag(t.Context(), p, &state.PartitionRange{Progress: at(100, 80, 70), Lagging: lagging})
	check("a call without an answer", 70, 70, lag)
	p.backlog.shards = nil // it is read again
	p.lease.progress, p.lease.lagging = []state.Position{{Offset: 100}, state.NoPosition, state.NoPosition}, lagging
	w.lagFromTheStart(p, errAway)
	check("taken without them", 70, 70, lag)
	w.noteLag(t.Context(), p, &state.PartitionRange{Progress: p.lease.progress, Lagging: lagging})
	check("a batch without them", 70, 70, lag)
	p.phase = catchingUp
	w.noteLag(t.Context(), p, &state.PartitionRange{Progress: at(120, 120, 120), To: 120})
	check("caught up", unknown, 120, lag) // readiness is reported once the partition is read again
	p.lease.progress = []state.Position{{Offset: 120}, state.NoPosition, state.NoPosition}
	w.lagFromTheStart(p, errAway)
	check("taken without them after that", unknown, 120, "payments/0: 2 state shards could not be claimed, the others go on: it hangs")
}

// What shards had is recorded when they begin to lag: the next batch may be under way when the partition is read again,
// and it must still show whether the store went back in time meanwhile.
func TestLaggingShardsThatWentBackAreDetected(t *testing.T) {
	t.Parallel()
	w := &worker{cfg: &Config{Store: away{}}, log: slog.New(slog.DiscardHandler), health: newHealth()}
	progress := []state.Position{at(100, 1), at(70, 1)}
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, lease: lease{progress: progress}, backlog: noBacklog, position: 120}
	w.noteLag(t.Context(), p, &state.PartitionRange{Progress: progress, Lagging: []bool{false, true}})
	p.lease.progress = nil // it was abandoned while a batch was applied
	if !p.wentBack(&state.Claim{Progress: []state.Position{at(100, 1), at(60, 1)}}) {
		t.Error("a lagging shard that came back with less progress is not detected")
	}
}

// A partition is read again ever more rarely for shards that take nothing: meanwhile the others get nothing new.
func TestReadingInVainBecomesRare(t *testing.T) {
	t.Parallel()
	w := &worker{cfg: &Config{Store: away{}}, log: slog.New(slog.DiscardHandler), health: newHealth()}
	p := &assignedPartition{Partition: state.Partition{Topic: "payments"}, phase: reading, backlog: noBacklog}
	lag := func(from int64) (wait time.Duration) {
		p.phase, p.backlog.shards, p.lease.progress = catchingUp, nil, nil // it is read again
		before := time.Now()
		w.noteLag(t.Context(), p, &state.PartitionRange{Progress: []state.Position{at(100, 1), at(from, 1)}, Lagging: []bool{false, true}, To: 80})
		return p.backlog.readAt.Sub(before)
	}
	var sum time.Duration // for which it has lagged
	for range 12 {
		sum += lag(70)
	}
	if wait := lag(70); wait < sum/3 || wait < 30*time.Second {
		t.Errorf("after %v in vain it is read again after %v, want about as long", sum, wait)
	}
	if wait := lag(71); wait > 10*time.Second {
		t.Errorf("after the shards took something it is read again after %v, want soon", wait)
	}
	if wait := lag(71); wait > 10*time.Second {
		t.Errorf("after it was in vain once it is read again after %v, want soon", wait)
	}
}
