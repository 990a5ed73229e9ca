package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/state"
)

// Topic is the dead-letter topic.
type Topic struct {
	Client    *kafka.Client
	Name      string
	Namespace string // of the reader
	// Seal is that of the reader's namespace. What it does not prove to be Weir's is not believed.
	Seal state.Seal
	// Patience is how long to wait for the next records; 0 means 30 seconds.
	Patience time.Duration
}

// unseal returns the headers of a record that Weir has written, and the others.
func (t *Topic) unseal(rec *record.Record) (ours, others record.HeaderList) {
	return record.Unseal(t.Seal, t.Name, rec.Key, rec.Value, rec.Headers)
}

// read visits all records that the topic holds at the time of the call; records of transactions
// once these are committed.
func (t *Topic) read(ctx context.Context, visit func(at RecordID, rec *record.Record) error) error {
	return t.readNewest(ctx, math.MaxInt64, visit)
}

// readNewest is read for the newest offsets of each partition.
func (t *Topic) readNewest(ctx context.Context, offsets int64, visit func(at RecordID, rec *record.Record) error) error {
	scanner := scan.New(scan.Config{Transport: t.Client.Transport, Bootstrap: t.Client.Addr, Patience: t.Patience})
	defer scanner.Close()
	ids, logs, err := scanner.Topic(ctx, t.Name)
	if err != nil {
		return fmt.Errorf("topic %s: %w", t.Name, err)
	}
	var ranges []*scan.Range
	for i := range logs {
		// Read to the ends of the logs, not only to the last stable offsets: this waits for records after an open
		// transaction, which may be receipts.
		l := &logs[i]
		ranges = append(ranges, &scan.Range{Partition: ids[i], Log: l.ID, LeaderEpoch: l.LeaderEpoch, Next: max(l.Start, l.End-offsets), To: l.End})
	}
	visitor := &visitor{visit: visit}
	if err = scanner.Read(ctx, ranges, visitor); errors.Is(err, scan.ErrHeld) {
		err = fmt.Errorf("topic %s cannot be read to its end because of an open transaction, perhaps of a replay that was interrupted: "+
			"try again when the brokers have given it up, at the latest after its transaction timeout", t.Name)
	}
	return cmp.Or(visitor.err, err)
}

// visitor passes on the records of the topic.
type visitor struct {
	visit func(at RecordID, rec *record.Record) error
	err   error // also of a batch that is damaged: it may have receipts
}

func (v *visitor) Record(rec *record.Record) error {
	if v.err == nil {
		v.err = v.visit(RecordID{rec.Partition.Topic, rec.Partition.ID, rec.Offset}, rec)
	}
	return v.err
}

// Lost ignores what retention has removed meanwhile: a receipt is newer than its letter.
func (v *visitor) Lost(_ state.Partition, _ int64, damaged error) { v.err = cmp.Or(v.err, damaged) }

func (*visitor) Fetching() {}
