package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/state"
)

// committer commits offsets to Kafka in the background. They are for lag tools only; the
// progress that counts is in the store.
type committer struct {
	generation atomic.Pointer[group.Generation] // the current one
	log        *slog.Logger
	ctx        context.Context // of the commits
	giveUp     context.CancelFunc
	wake       chan struct{}
	done       chan struct{}

	mu      sync.Mutex
	pending map[state.Partition]int64
	closed  bool
}

// commitLog holds what was committed in a generation of the group since the last full commit.
type commitLog struct {
	generation *group.Generation
	offsets    map[state.Partition]int64
	since      time.Time
}

// recommitEach is how often offsets that have not moved are committed again: some brokers
// expire them, and operators may have moved them.
const recommitEach = time.Minute

// changes returns the offsets to commit: those that have moved, or all of them if the last full commit was long ago or
// in another generation.
func (t *commitLog) changes(g *group.Generation, offsets map[state.Partition]int64, now time.Time) map[state.Partition]int64 {
	if t.generation != g || now.Sub(t.since) >= recommitEach {
		*t = commitLog{generation: g, offsets: make(map[state.Partition]int64), since: now}
	}
	moved := make(map[state.Partition]int64)
	for p, offset := range offsets {
		if before, ok := t.offsets[p]; !ok || before != offset {
			moved[p] = offset
		}
	}
	return moved
}

func newCommitter(log *slog.Logger) *committer {
	c := &committer{
		log:  log,
		wake: make(chan struct{}, 1), done: make(chan struct{}),
		pending: make(map[state.Partition]int64),
	}
	c.ctx, c.giveUp = context.WithCancel(context.Background())
	go c.run()
	return c
}

// commit schedules offsets for the next commit.
func (c *committer) commit(offsets map[state.Partition]int64) {
	c.mu.Lock()
	maps.Copy(c.pending, offsets)
	c.mu.Unlock()
	c.signal()
}

// close commits the pending offsets and ends, within a time: a coordinator may hang.
func (c *committer) close(within time.Duration) {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	late := time.AfterFunc(within, c.giveUp)
	<-c.done
	late.Stop()
	c.giveUp()
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *committer) run() {
	defer close(c.done)
	var before commitLog
	for range c.wake {
		c.mu.Lock()
		pending, closed := c.pending, c.closed
		c.pending = make(map[state.Partition]int64)
		c.mu.Unlock()
		generation := c.generation.Load()
		if moved := before.changes(generation, pending, time.Now()); len(moved) > 0 {
			err := generation.Commit(c.ctx, moved)
			if err == nil {
				maps.Copy(before.offsets, moved)
			}
			// While the group forms its next generation it refuses commits; partitions are still processed.
			if err != nil && !errors.Is(err, kafka.RebalanceInProgress) && !errors.Is(err, kafka.IllegalGeneration) {
				c.log.Warn("offsets not committed; the lag shown by Kafka's tools is too high until the next commit", "error", err)
			}
		}
		if closed {
			return
		}
	}
}
