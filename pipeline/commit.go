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

// committer commits offsets to Kafka beside the work. They only tell others how
// far the group is; where it goes on stands in the store.
type committer struct {
	generation atomic.Pointer[group.Generation] // the present one
	log        *slog.Logger
	wake       chan struct{}
	done       chan struct{}

	mu      sync.Mutex
	pending map[state.Partition]int64
	closed  bool
}

// told is what was committed in a generation, all of it since a moment.
type told struct {
	generation *group.Generation
	offsets    map[state.Partition]int64
	since      time.Time
}

// retell is how often offsets are committed that have not moved: some brokers forget
// them in time, and operators may have moved them.
const retell = time.Minute

// news is what is to be committed of offsets: those that moved, or all of them where
// the last time is long ago, or was in another generation.
func (t *told) news(g *group.Generation, offsets map[state.Partition]int64, now time.Time) map[state.Partition]int64 {
	if t.generation != g || now.Sub(t.since) >= retell {
		*t = told{generation: g, offsets: make(map[state.Partition]int64), since: now}
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
	go c.run()
	return c
}

// commit takes offsets to be committed soon.
func (c *committer) commit(offsets map[state.Partition]int64) {
	c.mu.Lock()
	maps.Copy(c.pending, offsets)
	c.mu.Unlock()
	c.signal()
}

// close commits what is pending and ends.
func (c *committer) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
	<-c.done
}

func (c *committer) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *committer) run() {
	defer close(c.done)
	var before told
	for range c.wake {
		c.mu.Lock()
		pending, closed := c.pending, c.closed
		c.pending = make(map[state.Partition]int64)
		c.mu.Unlock()
		generation := c.generation.Load()
		if moved := before.news(generation, pending, time.Now()); len(moved) > 0 {
			err := generation.Commit(context.Background(), moved)
			if err == nil {
				maps.Copy(before.offsets, moved)
			}
			// While the group forms its next generation it takes none; partitions go on meanwhile.
			if err != nil && !errors.Is(err, kafka.RebalanceInProgress) && !errors.Is(err, kafka.IllegalGeneration) {
				c.log.Warn("offsets not committed; the lag shown by Kafka's tools is too great until the next commit", "error", err)
			}
		}
		if closed {
			return
		}
	}
}
