package node

import (
	"context"
	"time"
)

// lastMoment returns a channel that receives, once the context has ended, the moment by which the process must stop: it
// adds the time for questions and, with a processor, the time for events.
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
