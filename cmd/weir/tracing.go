package main

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/weir-stream/weir/internal/tracing"
)

// startTracing makes the node's provider of spans.
func (n *node) startTracing() (err error) {
	info, _ := debug.ReadBuildInfo()
	n.tracing, n.endTracing, err = tracing.Start(context.Background(), tracing.Config{
		Endpoint: n.cfg.Tracing.Endpoint, SampleRatio: n.cfg.Tracing.SampleRatio, Version: releaseOf(info, release), Logger: n.log,
	})
	return err
}

// lastMoment gets, once the context has ended, until when a process may take to
// stop: as long as questions have for it, and events where there is a processor.
func (n *node) lastMoment(ctx context.Context) <-chan time.Time {
	patience := n.cfg.API.ShutdownTimeout
	if n.processor != nil {
		patience = max(patience, n.cfg.Processor.ShutdownTimeout)
	}
	moment := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { moment <- time.Now().Add(patience) })
	return moment
}

// flushSpans sends the spans that are left, those of the last batches and
// questions among them.
func (n *node) flushSpans(until time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	if err := n.endTracing(ctx); err != nil {
		n.log.Warn("spans are lost", "error", err)
	}
}
