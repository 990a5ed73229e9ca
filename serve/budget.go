package serve

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"github.com/weir-stream/weir/serve/reply"
)

// A question holds memory in stages, each with a share of Limits.InFlight. It waits
// for a share while it holds one of an earlier stage, never of a later one, so
// whoever is waited for goes on. What a client holds up by being slow is received
// or sent: questions with short bodies and answers pass by it.
type stage int

const (
	receiving stage = iota // a long body, until it is parsed
	parsing                // the question, until its answer is encoded
	reading                // what it reads, until then
	sending                // a long answer, until it is written
	stages
)

const (
	// freeBody and freeAnswer are the bytes of a body and of an answer that
	// Limits.Concurrent alone bounds.
	freeBody, freeAnswer = 16 << 10, 64 << 10
	// parsedSize is how many bytes a byte of a question takes at the most once it is
	// parsed: of a list such as [1,1,1] each two are a value of fastjson.
	parsedSize = 48
	// readSize is about how many bytes it takes to read and to fold a value.
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

// held is what one question holds.
type held struct {
	*budgets
	bytes [stages]int64
}

// hold waits in line for a share's bytes. A question that needs more than the
// whole share gets that, alone.
func (q *held) hold(ctx context.Context, s stage, bytes int64) error {
	bytes = min(bytes, q.size) - q.bytes[s]
	if bytes <= 0 {
		return nil
	}
	if !q.shares[s].TryAcquire(bytes) { // most find room at once
		err := q.shares[s].Acquire(ctx, bytes)
		if err == nil {
			q.bytes[s] += bytes
			// There may be room in the instant in which the time is up, which was spent in line.
			err = ctx.Err()
		}
		return q.refusal(err)
	}
	q.bytes[s] += bytes
	return nil
}

// refusal is what a client is told whose time was spent in line.
func (b *budgets) refusal(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return reply.Errorf(reply.Overloaded, "the questions under way take all of the %d bytes of memory that api.max_inflight_bytes leaves them; "+
			"ask about less at once, ask again in a second, or ask another server", b.total)
	}
	return err
}

// release gives back what is held of a share.
func (q *held) release(s stage) {
	if q.bytes[s] > 0 {
		q.shares[s].Release(q.bytes[s])
		q.bytes[s] = 0
	}
}

// releaseAll ends the question's use of memory.
func (q *held) releaseAll() {
	for s := range stages {
		q.release(s)
	}
}
