package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"

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
	for range c.wake {
		c.mu.Lock()
		pending, closed := c.pending, c.closed
		c.pending = make(map[state.Partition]int64)
		c.mu.Unlock()
		if len(pending) > 0 {
			err := c.generation.Load().Commit(context.Background(), pending)
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
