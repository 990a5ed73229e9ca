package pipeline

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/testkit/blackbox"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// follows are the phases that may follow each, in the order of their declaration.
const follows = `
           resuming reading catching lagging waiting stopped leaving released
resuming   -        yes     yes      yes     yes     yes     yes     yes
reading    yes      -       -        yes     -       yes     yes     yes
catching   yes      yes     -        yes     -       yes     yes     yes
lagging    yes      -       -        -       -       yes     yes     yes
waiting    yes      -       -        -       -       -       yes     yes
stopped    yes      -       -        -       -       -       yes     yes
leaving    -        -       -        -       -       -       -       yes
released   -        -       -        -       -       -       -       -
`

// eachPair calls fn with each two phases, a partition in the first of them whose records are in the current batch, and
// its worker.
func eachPair(t *testing.T, log *slog.Logger, fn func(t *testing.T, w *worker, p *assignedPartition, to phase, may bool)) {
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: &kafka.Transport{}})
	defer poller.Close()
	pairs := 0
	for from, line := range strings.Split(strings.TrimSpace(follows), "\n")[1:] {
		for to, cell := range strings.Fields(line)[1:] {
			pairs++
			t.Run(fmt.Sprintf("%v to %v", phase(from), phase(to)), func(t *testing.T) {
				p := &assignedPartition{
					Partition: state.Partition{Topic: "payments"}, phase: phase(from), position: 8,
					lease: lease{number: 5, progress: []state.Position{at(5, 1)}}, pause: pause{until: time.Now()},
					trouble: retry.Trouble{Log: log, What: "processing the partition"},
				}
				w := &worker{
					log: log, poller: poller, current: newBatch(), other: newBatch(), metrics: newMetrics(prometheus.NewRegistry()), health: newHealth(),
					partitions: map[state.Partition]*assignedPartition{p.Partition: p},
				}
				w.current.rangeOf(p)
				fn(t, w, p, phase(to), cell == "yes")
			})
		}
	}
	if want := len(transitions) * len(transitions); pairs != want {
		t.Errorf("%d pairs of phases were tried, want %d", pairs, want)
	}
}

// isOver reports whether what is under way for a partition of eachPair no longer counts.
func isOver(w *worker, p *assignedPartition) bool {
	return p.lease.number == 6 && p.lease.progress == nil && w.current.Ranges[0].Behind && p.in == nil
}

// A partition changes from each phase to those of the picture, and to no other. Its lease ends unless it stays active or
// leaves, and no pause outlasts its phase.
func TestPhasesFollowThePicture(t *testing.T) {
	t.Parallel()
	eachPair(t, slog.New(slog.DiscardHandler), func(t *testing.T, w *worker, p *assignedPartition, to phase, may bool) {
		panicked := func() (panicked bool) {
			defer func() { panicked = recover() != nil }()
			w.move(p, to)
			return false
		}()
		if panicked == may {
			t.Fatalf("it is refused: %v, want %v", panicked, !may)
		}
		keeps := to == reading || to == catchingUp || to == lagging || to == leaving
		if may && (p.phase != to || p.pause != pause{} || isOver(w, p) == keeps) {
			t.Errorf("it is %v, paused until %v, and its lease is over: %v; want it to be %v, without a pause, and %v", p.phase, p.pause.until, isOver(w, p), to, !keeps)
		}
	})
}

// In production a wrong transition is logged as an error, and the partition starts over: nothing that is under way for it
// counts. What was released is left alone, since another may have its name.
func TestWrongTransitionStartsOver(t *testing.T) {
	strict = false // so no other test runs meanwhile
	defer func() { strict = true }()
	var logged bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logged, nil))
	eachPair(t, log, func(t *testing.T, w *worker, p *assignedPartition, to phase, may bool) {
		from := p.phase
		logged.Reset()
		if moved := w.move(p, to); moved != may {
			t.Fatalf("it is taken: %v, want %v", moved, may)
		}
		if broken := blackbox.Broken(logged.String()) != ""; broken == may {
			t.Errorf("the log shows an error in the program: %v, want %v:\n%s", broken, !may, logged.String())
		}
		want, problem := stopped, fmt.Sprintf("payments/0: a partition that is %v cannot become %v: this is an error in the program", from, to)
		if from == leaving || from == released {
			want, problem = from, "<nil>"
		}
		if may {
			return
		}
		if err := fmt.Sprint(w.health.err()); p.phase != want || err != problem || isOver(w, p) == (from == released) {
			t.Errorf("it is %v, its lease is over: %v, and health says %s; want %v, and %s", p.phase, isOver(w, p), err, want, problem)
		}
		if want == stopped && !p.pause.until.After(time.Now()) {
			t.Error("it is not tried again after a while")
		}
	})
}
