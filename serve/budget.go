package serve

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/weir-stream/weir/serve/reply"
)

// A question holds memory in stages, each with a share of Limits.InFlight. It may wait for a share while it holds one
// of an earlier stage, never of a later one, so there is no deadlock. Slow clients only block receiving or sending, and
// questions with short bodies and answers overtake them.
type stage int

const (
	receiving stage = iota // a long body, until it is parsed
	parsing                // the question, until its answer is encoded
	reading                // the state that it reads, until its answer is encoded
	sending                // a long answer, until it is written
	stages
)

const (
	// freeBody and freeAnswer are the bytes of a body and of an answer that only Limits.Concurrent
	// bounds.
	freeBody, freeAnswer = 16 << 10, 64 << 10
	// parsedSize is the most bytes of memory for each byte of a parsed question: in a list such as [1,1,1] every two
	// bytes are a value of fastjson.
	parsedSize = 48
	// readSize is about how many bytes it takes to read and fold a value.
	readSize = 1 << 10
)

// budgets are the shares of all stages, in bytes.
type budgets struct {
	shares [stages]*semaphore.Weighted
	size   int64 // of each share
	total  int64
}

func newBudgets(total int64) *budgets {
	b := &budgets{size: max(1, total/int64(stages)), total: total}
	for i := range b.shares {
		b.shares[i] = semaphore.NewWeighted(b.size)
	}
	return b
}

// held is the memory that one question holds.
type held struct {
	*budgets
	bytes  [stages]int64
	inLine time.Duration // how long it has queued for memory so far
}

// hold queues for bytes of a share. A question that needs more than the whole share gets all of it, alone.
func (q *held) hold(ctx context.Context, s stage, bytes int64) error {
	bytes = min(bytes, q.size) - q.bytes[s]
	if bytes <= 0 {
		return nil
	}
	if !q.shares[s].TryAcquire(bytes) { // usually memory is free
		began := time.Now()
		err := q.shares[s].Acquire(ctx, bytes)
		q.inLine += time.Since(began)
		if err == nil {
			q.bytes[s] += bytes
			// The question's time may have ended at the moment when memory became free.
			err = ctx.Err()
		}
		return q.refusal(err)
	}
	q.bytes[s] += bytes
	return nil
}

// refusal returns the error for a question whose time ended in the queue.
func (b *budgets) refusal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return reply.Errorf(reply.Overloaded, "the questions under way take all of the %d bytes of memory that api.max_inflight_bytes leaves them; "+
			"ask about less at once, ask again in a second, or ask another server", b.total)
	}
	return err
}

// attribute returns the refusal in place of a deadline error, if the question spent most of its time in the queue:
// memory that becomes free too late is not the store's fault.
func (q *held) attribute(err error, timeout time.Duration) error {
	if q.inLine > timeout/2 {
		return q.refusal(err)
	}
	return err
}

// release returns the bytes of a share.
func (q *held) release(s stage) {
	if q.bytes[s] > 0 {
		q.shares[s].Release(q.bytes[s])
		q.bytes[s] = 0
	}
}

// releaseAll releases all memory of the question.
func (q *held) releaseAll() {
	for s := range stages {
		q.release(s)
	}
}
