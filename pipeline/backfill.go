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

// newBackfiller makes the backfiller for the processor's partitions, which gives way to live batches. It is nil if
// backfill is not enabled.
func newBackfiller(cfg *Config, live *backfill.Live, dead *DeadLetterWriter) *backfill.Backfiller {
	if !cfg.Backfill {
		return nil
	}
	return backfill.New(backfill.Config{
		Schemas: cfg.Schemas, Namespace: cfg.Namespace, DeadLetterTopic: cfg.DeadLetterTopic, DeadLetters: dead,
		Store: cfg.Store, Transport: cfg.Transport, Brokers: cfg.Brokers, Isolation: cfg.Isolation,
		MaxRecordBytes: cfg.MaxRecordBytes, Rate: cfg.BackfillRate, MaxEvents: cfg.MaxEvents, MaxBytes: cfg.MaxBytes,
		Live: live, Metrics: cfg.Metrics, Logger: cfg.Logger,
	})
}

// Backfills lists the backfills of this processor's partitions.
func (p *Processor) Backfills() []backfill.Running {
	if p.backfiller == nil {
		return nil
	}
	return p.backfiller.Running()
}

// backfill fills new features from the assigned partitions, beside live events, until the context ends. It returns a
// function that waits for the end. Any member may fill a partition, so none waits for another.
func (c *consumer) backfill(ctx context.Context, registry *features.Registry) (wait func()) {
	var filling sync.WaitGroup
	if c.p.backfiller != nil {
		filling.Go(func() {
			// New fills are known once the plan is registered.
			for {
				if _, err := c.p.definitions.registration(registry.Plan()).renew(ctx); err == nil {
					break
				}
				if !retry.Wait(ctx, time.Second) {
					return
				}
			}
			c.p.backfiller.Run(ctx, backfill.Work{Registry: registry, Partitions: c.partitions})
		})
	}
	return filling.Wait
}

// partitions returns the partitions that the group has given this member.
func (c *consumer) partitions() []state.Partition {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.assigned)
}

// sweeper is a store that must be made to drop outdated state of entities without further events.
type sweeper interface {
	// Sweep drops what a plan with these series does not keep, until the context ends.
	Sweep(ctx context.Context, plan *state.Plan, series []*state.Series)
}

// sweep runs the store's sweep, if it has one, until the context ends. It returns a function that
// waits for the end.
func (c *consumer) sweep(ctx context.Context, registry *features.Registry) (wait func()) {
	var sweeping sync.WaitGroup
	if s, ok := c.p.cfg.Store.(sweeper); ok {
		sweeping.Go(func() { s.Sweep(ctx, registry.Plan(), registry.Series) })
	}
	return sweeping.Wait
}
