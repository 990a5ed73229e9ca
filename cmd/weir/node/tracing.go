package node

import (
	"context"
	"time"
)

// lastMoment receives, once the context has ended, the moment until which the process may take to
// stop: the time for questions, and for events if there is a processor.
func (n *Node) lastMoment(ctx context.Context) <-chan time.Time {
	patience := n.lastAnswers
	if n.processor != nil {
		patience = max(patience, n.lastEvents)
	}
	moment := make(chan time.Time, 1)
	context.AfterFunc(ctx, func() { moment <- time.Now().Add(patience) })
	return moment
}

// flushSpans sends the remaining spans, including those of the last batches and questions.
func (n *Node) flushSpans(until time.Time) {
	ctx, cancel := context.WithDeadline(context.Background(), until)
	defer cancel()
	if err := n.endTracing(ctx); err != nil {
		n.log.Warn("spans are lost", "error", err)
	}
}
