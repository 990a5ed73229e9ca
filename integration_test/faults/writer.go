package main

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/integration_test/faults/workload"
)

// writer writes a round's events evenly over its time, some of them in transactions that commit or abort. The records
// that count are read back from the log: a producer cannot know the result of a request whose broker was killed.
type writer struct {
	round  *round
	random *rand.Rand
	events *workload.Generator
	plain  *kgo.Client
	// transactional is recreated after a failed transaction.
	transactional *kgo.Client
	newest        atomic.Int64 // the timestamp of the last record, in ms
}

func newWriter(r *round) *writer {
	random := r.random("writer")
	return &writer{round: r, random: random, events: workload.NewGenerator(r.random("events"), r.scenario.Options)}
}

// chunk bounds the events written at once.
const chunk = 200

func (w *writer) run() {
	w.plain = w.client()
	defer w.plain.Close()
	scenario := w.round.scenario
	for written := 0; written < scenario.Events; {
		n := min(scenario.Events-written, 1+w.random.IntN(chunk))
		w.round.sleepUntil(time.Duration(written) * scenario.Length / time.Duration(scenario.Events))
		if w.round.kit.Failed() {
			return
		}
		records := make([]workload.Message, n)
		for i := range records {
			records[i] = w.events.Next()
		}
		w.write(records)
		written += n
	}
	if w.transactional != nil {
		w.transactional.Close()
	}
}

// more writes n more events, none of them in transactions.
func (w *writer) more(n int) {
	w.plain = w.client()
	defer w.plain.Close()
	records := make([]workload.Message, n)
	for i := range records {
		records[i] = w.events.Next()
	}
	w.send(records)
}

// write writes events in one of several ways, and repeats a failed write.
func (w *writer) write(events []workload.Message) {
	switch w.random.IntN(5) {
	case 0:
		w.transact(events, kgo.TryCommit)
	case 1:
		w.transact(events, kgo.TryAbort)
		w.round.happened("transaction aborted")
		w.send(events) // now the events count once
	default:
		w.send(events)
	}
}

// writeWithin bounds the writing of one chunk; no fault lasts that long.
const writeWithin = 3 * time.Minute

func (w *writer) send(events []workload.Message) {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	if err := w.plain.ProduceSync(ctx, w.records(events)...).FirstErr(); err != nil {
		w.round.kit.Fatalf("write %d events: %v", len(events), err)
	}
}

// transact writes events in a transaction. A failed transaction is left for the next producer of
// the same name to end; its events are then written without one.
func (w *writer) transact(events []workload.Message, end kgo.TransactionEndTry) {
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

// hang writes events in a transaction that only the broker ends, after its timeout.
func (w *writer) hang(events []workload.Message, timeout time.Duration) (release func()) {
	ctx, cancel := context.WithTimeout(context.Background(), writeWithin)
	defer cancel()
	client := w.client(kgo.TransactionalID("hung"+w.round.suffix), kgo.TransactionTimeout(timeout))
	if err := client.BeginTransaction(); err == nil {
		_ = client.ProduceSync(ctx, w.records(events)...).FirstErr() // it may hang without having written
	}
	return client.CloseAllowingRebalance
}

func (w *writer) records(events []workload.Message) []*kgo.Record {
	records := make([]*kgo.Record, len(events))
	for i, e := range events {
		w.newest.Store(e.Timestamp)
		records[i] = &kgo.Record{Topic: e.Topic + w.round.suffix, Key: e.Key, Value: e.Value, Timestamp: time.UnixMilli(e.Timestamp)}
	}
	return records
}

func (w *writer) client(opts ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append(opts, kgo.SeedBrokers(w.round.kafka.Link.Addr()), kgo.AlwaysRetryEOF(), kgo.MetadataMinAge(100*time.Millisecond), kgo.MetadataMaxAge(time.Second), // a topic may get more partitions
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }))...)
	if err != nil {
		w.round.kit.Fatal(err)
	}
	return c
}
