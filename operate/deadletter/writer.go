package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

const (
	maxLetters = 500
	// maxBytes bounds the records of one transaction, except a single larger record: so low that no
	// batch exceeds the brokers' default limit.
	maxBytes = 512 << 10
)

// errTakenOver is the error of a replay that another one has fenced.
var errTakenOver = errors.New("another replay of this dead-letter topic was started, and goes on from here")

// entry is one event to replay, or only its missing receipts.
type entry struct {
	event    event
	record   *kgo.Record // nil for one that was replayed before
	reason   string
	receipts []int32 // partitions of the dead-letter topic
}

// writer writes entries in transactions, each atomic.
type writer struct {
	client   *kgo.Client
	topic    string // of the dead letters
	seal     state.Seal
	most     int // entries of a transaction
	replayed map[string]int

	entries []entry
	bytes   int
}

// add adds an entry, and first writes the earlier ones if they are enough.
func (w *writer) add(ctx context.Context, e entry) error {
	size := 0
	if e.record != nil {
		size = len(e.record.Key) + len(e.record.Value)
		for _, h := range e.record.Headers {
			size += len(h.Key) + len(h.Value)
		}
	}
	if len(w.entries) >= w.most || len(w.entries) > 0 && w.bytes+size > maxBytes {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.entries = append(w.entries, e)
	w.bytes += size
	return nil
}

// flush writes the pending entries in one transaction.
func (w *writer) flush(ctx context.Context) error {
	if len(w.entries) == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	var records []*kgo.Record
	for _, e := range w.entries {
		if e.record != nil {
			records = append(records, e.record)
		}
		for _, partition := range e.receipts {
			receipt := &kgo.Record{Topic: w.topic, Partition: partition}
			headers := []record.Header{
				{Key: headerReceipt, Value: []byte(e.event.String())},
				{Key: headerReceiptTimestamp, Value: strconv.AppendInt(nil, e.event.timestamp, 10)},
				{Key: headerReceiptNamespace, Value: []byte(e.event.namespace)},
			}
			seal(receipt, w.seal, headers, len(headers))
			records = append(records, receipt)
		}
	}
	if err := w.client.BeginTransaction(); err != nil {
		return fenced(err)
	}
	// The end of a transaction is not interrupted, because its outcome would be unknown.
	whole := context.WithoutCancel(ctx)
	if err := w.client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		// If this fails, too, the brokers abort the transaction when it times out, or when the next replay begins.
		_ = w.client.EndTransaction(whole, kgo.TryAbort)
		return fenced(err)
	}
	if err := w.client.EndTransaction(whole, kgo.TryCommit); err != nil {
		return fenced(err)
	}
	for _, e := range w.entries {
		if e.record != nil {
			w.replayed[e.reason]++
		}
	}
	w.entries, w.bytes = w.entries[:0], 0
	return nil
}

// seal gives a record headers, of which the last few are Weir's, and a seal after them.
func seal(rec *kgo.Record, by state.Seal, headers []record.Header, ours int) {
	for _, h := range append(headers, record.SealOf(by, rec.Topic, rec.Key, rec.Value, headers, ours)) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader(h))
	}
}

// fenced distinguishes a replay that was taken over from one that failed.
func fenced(err error) error {
	if errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch) {
		return errTakenOver
	}
	return fmt.Errorf("replay: %w; what was not replayed is still there, run it again", err)
}
