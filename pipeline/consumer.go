package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
)

// consumer processes the partitions that the group has assigned to this member. They may change while it runs: new
// partitions join, released ones leave, and all others continue.
type consumer struct {
	p      *Processor
	commit func(map[state.Partition]int64)

	mu       sync.Mutex
	assigned []state.Partition
	pool     *pool // nil while definitions are replaced, and at the end
}

// run processes partitions by the current definitions until the context ends, then flushes and releases them.
func (c *consumer) run(ctx context.Context) error {
	for ctx.Err() == nil {
		given, replaced := c.p.definitions.current()
		current, cancel := until(ctx, replaced)
		registry := c.p.bind(current, given)
		if registry == nil {
			cancel()
			continue
		}
		pool := newPool(current, c.p, given, registry, c.commit)
		c.mu.Lock()
		c.pool = pool
		pool.accept(c.assigned)
		c.mu.Unlock()
		filled, swept := c.backfill(current, registry), c.sweep(current, registry)
		var watching sync.WaitGroup
		if c.p.cfg.Workers > 1 {
			watching.Go(func() { c.balance(pool.ctx, pool) })
		}
		watching.Go(func() { c.p.rebind(current, given, registry.Plan()) })
		watching.Go(func() { c.p.align(pool.ctx, registry) })
		<-pool.ctx.Done()
		c.mu.Lock() // releases now wait until partitions are flushed
		err := pool.end()
		c.pool = nil
		c.mu.Unlock()
		cancel()
		filled()
		swept()
		watching.Wait()
		if err != nil {
			return err
		}
	}
	return nil
}

// accept adds partitions.
func (c *consumer) accept(partitions []state.Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var taken []state.Partition
	for _, id := range partitions {
		if !slices.Contains(c.assigned, id) {
			taken = append(taken, id)
			c.p.health.set(id.String(), errNotResumed)
		}
	}
	c.assigned = append(c.assigned, taken...)
	c.p.alignment.Join(taken)
	c.count()
	if c.pool != nil && len(taken) > 0 {
		c.pool.accept(taken)
	}
}

// release flushes and releases partitions. The next owner applies what the store does not take in time.
func (c *consumer) release(partitions []state.Partition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pool != nil {
		c.pool.release(partitions, c.flushTime())
		c.pool.memories.drop(partitions) // another process has them
	}
	c.p.alignment.Leave(partitions)
	c.assigned = slices.DeleteFunc(c.assigned, func(id state.Partition) bool { return slices.Contains(partitions, id) })
	for _, id := range partitions {
		c.p.health.clear(id.String())
		c.p.metrics.forget(id)
	}
	c.count()
}

// flushTime returns how long released partitions may take to be flushed.
func (c *consumer) flushTime() time.Duration {
	return min(c.p.cfg.ShutdownTimeout, c.p.cfg.SessionTimeout/3)
}

// hasPartitions reports whether there is any partition.
func (c *consumer) hasPartitions() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.assigned) > 0
}

func (c *consumer) count() {
	c.p.metrics.assigned(c.assigned)
	c.p.stats.assigned.Store(int64(len(c.assigned)))
}

// close forgets all partitions, once run has ended.
func (c *consumer) close() { c.release(slices.Clone(c.assigned)) }

// outlast returns a context that outlasts another one by some time, to finish what is under way.
func outlast(ctx context.Context, longer time.Duration) (context.Context, context.CancelFunc) {
	patient, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(longer, giveUp) })
	return patient, func() { stop(); giveUp() }
}
