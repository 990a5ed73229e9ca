package pipeline

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
)

// newBackfiller makes what fills the partitions that the processor carries; nil for none.
func newBackfiller(cfg *Config) *backfill.Backfiller {
	if !cfg.Backfill {
		return nil
	}
	return backfill.New(backfill.Config{
		Schemas: cfg.Schemas,
		Store:   cfg.Store, Transport: cfg.Transport, Brokers: cfg.Brokers, Isolation: cfg.Isolation,
		MaxRecordBytes: cfg.MaxRecordBytes, Rate: cfg.BackfillRate, MaxEvents: cfg.MaxEvents, MaxBytes: cfg.MaxBytes,
		Metrics: cfg.Metrics, Logger: cfg.Logger,
	})
}

// refill fills what new features need of the partitions that are carried, beside live events,
// until the context ends. It returns how to wait for that. Which member fills a partition
// makes no difference to what is counted, so none waits for another.
func (c *consumer) refill(ctx context.Context, registry *features.Registry) (wait func()) {
	var filling sync.WaitGroup
	if c.p.backfiller != nil {
		filling.Go(func() {
			// What is new is found when the plan is registered.
			for {
				if _, err := c.p.definitions.registration(registry.Plan()).renew(ctx); err == nil {
					break
				}
				if !retry.Wait(ctx, time.Second) {
					return
				}
			}
			c.p.backfiller.Run(ctx, backfill.Work{Registry: registry, Partitions: c.carried})
		})
	}
	return filling.Wait
}

// carried are the partitions that the group has given this member.
func (c *consumer) carried() []state.Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.assigned)
}

// sweeper is a store that does not drop by itself what is no longer kept of entities to
// which nothing happens any more.
type sweeper interface {
	// Sweep drops what a plan with these series does not keep, until the context ends.
	Sweep(ctx context.Context, plan *state.Plan, series []*state.Series)
}

// sweep has the store swept, if it needs that, until the context ends. It returns how to
// wait for the end.
func (c *consumer) sweep(ctx context.Context, registry *features.Registry) (wait func()) {
	var sweeping sync.WaitGroup
	if s, ok := c.p.cfg.Store.(sweeper); ok {
		sweeping.Go(func() { s.Sweep(ctx, registry.Plan(), registry.Series) })
	}
	return sweeping.Wait
}
