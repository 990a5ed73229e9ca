package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// writer writes a round's events evenly over its time, some in transactions, some of which
// are rolled back. What the log has of it in the end is read from the log: a producer does not
// know what became of a request whose broker was killed.
type writer struct {
	round  *round
	random *rand.Rand
	events *generator
	plain  *kgo.Client
	// transactional is made anew after a transaction that failed.
	transactional *kgo.Client
}

func newWriter(r *round) *writer {
	random := r.random("writer")
	return &writer{round: r, random: random, events: newGenerator(r.random("events"), r.plan.Options)}
}

// chunk is how many events are written at once, at the most.
const chunk = 200

func (w *writer) run() {
	w.plain = w.client()
	defer w.plain.Close()
	plan := w.round.plan
	for written := 0; written < plan.Events; {
		n := min(plan.Events-written, 1+w.random.IntN(chunk))
		w.round.sleepUntil(time.Duration(written) * plan.Length / time.Duration(plan.Events))
		if w.round.kit.Failed() {
			return
		}
		records := make([]message, n)
		for i := range records {
			records[i] = w.events.next()
		}
		w.write(records)
		written += n
	}
	if w.transactional != nil {
		w.transactional.Close()
	}
}

// more writes some more events, none of them in transactions.
func (w *writer) more(n int) {
	w.plain = w.client()
	defer w.plain.Close()
	records := make([]message, n)
	for i := range records {
		records[i] = w.events.next()
	}
	w.send(records)
}

// write writes events in one of the ways there are, again where that fails.
func (w *writer) write(events []message) {
	switch w.random.IntN(5) {
	case 0:
		w.transact(events, kgo.TryCommit)
	case 1:
		w.transact(events, kgo.TryAbort)
		w.round.happened("transaction aborted")
		w.send(events) // the events themselves count, once
	default:
		w.send(events)
	}
}

// writeWithin bounds the writing of one chunk: no fault lasts as long.
const writeWithin = time.Minute

func (w *writer) send(events []message) {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := w.plain.ProduceSync(ctx, w.records(events)...).FirstErr(); err != nil {
		w.round.kit.Fatalf("write %d events: %v", len(events), err)
	}
}

// transact writes events in a transaction. One that fails is left as it is, for a producer of
// the same name to end; its events are then written without.
func (w *writer) transact(events []message, end kgo.TransactionEndTry) {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if w.transactional == nil {
		w.transactional = w.client(kgo.TransactionalID(w.round.suffix), kgo.TransactionTimeout(10*time.Second))
	}
	err := w.transactional.BeginTransaction()
	if err == nil {
		err = w.transactional.ProduceSync(ctx, w.records(events)...).FirstErr()
	}
	if err == nil {
		err = w.transactional.EndTransaction(ctx, end)
	}
	if err != nil {
		w.transactional.Close()
		w.transactional = nil
		w.round.happened("transaction failed")
	}
}

// hang writes events in a transaction that nobody ends before the broker does.
func (w *writer) hang(events []message, timeout time.Duration) (release func()) {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	client := w.client(kgo.TransactionalID("hung"+w.round.suffix), kgo.TransactionTimeout(timeout))
	if err := client.BeginTransaction(); err == nil {
		_ = client.ProduceSync(ctx, w.records(events)...).FirstErr() // it may hang without having written
	}
	return client.CloseAllowingRebalance
}

func (w *writer) records(events []message) []*kgo.Record {
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		records[i] = &kgo.Record{Topic: e.topic + w.round.suffix, Key: e.key, Value: e.value, Timestamp: time.UnixMilli(e.timestamp)}
	}
	return records
}

func (w *writer) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(w.round.kafka.link.Addr()), kgo.AlwaysRetryEOF(),
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }))...)
	if err != nil {
		w.round.kit.Fatal(err)
	}
	return c
}
