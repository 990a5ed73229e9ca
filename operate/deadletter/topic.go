package deadletter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
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
func (t *Topic) unseal(rec *fetch.Record) (ours, others record.HeaderList) {
	return record.Unseal(t.Seal, t.Name, rec.Key, rec.Value, rec.Headers)
}

// read visits all records that the topic holds at the time of the call; records of transactions
// once these are committed.
func (t *Topic) read(ctx context.Context, visit func(at RecordID, rec *fetch.Record) error) error {
	return t.readNewest(ctx, math.MaxInt64, visit)
}

// readNewest is read for the newest offsets of each partition.
func (t *Topic) readNewest(ctx context.Context, offsets int64, visit func(at RecordID, rec *fetch.Record) error) error {
	found, err := t.Client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{t.Name}})
	if err == nil {
		err = found.Topics[0].Error
	}
	if err != nil {
		return fmt.Errorf("topic %s: %w", t.Name, err)
	}
	var partitions []int32
	for _, p := range found.Topics[0].Partitions {
		partitions = append(partitions, int32(p.ID))
	}
	// Read to the ends of the logs, not only to the last stable offsets: this waits for records after an open
	// transaction, which may be receipts.
	ends := t.poller(fetch.ReadUncommitted)
	defer ends.Close()
	ranges, err := ends.Offsets(ctx, t.Name, partitions...)
	if err != nil {
		return err
	}
	left := map[int32]int64{}
	records := t.poller(fetch.ReadCommitted)
	defer records.Close()
	for partition, r := range ranges {
		if r.Start < r.End {
			left[partition] = r.End
			records.Add(t.Name, partition, max(r.Start, r.End-offsets))
		}
	}
	var decoder fetch.Decoder
	for len(left) > 0 {
		part, err := t.next(ctx, records)
		var outside *fetch.OffsetOutOfRangeError
		if errors.As(err, &outside) { // retention was faster
			records.Seek(t.Name, outside.Partition, outside.LogStart)
			done(records, t.Name, left, outside.Partition, outside.LogStart)
			continue
		}
		if err != nil {
			return err
		}
		decoder.Reset(part)
		var rec fetch.Record
		for {
			ok, err := decoder.Next(&rec)
			if err != nil {
				return err
			}
			if !ok || rec.Offset >= left[part.Partition] {
				break
			}
			if err := visit(RecordID{t.Name, part.Partition, rec.Offset}, &rec); err != nil {
				return err
			}
		}
		done(records, t.Name, left, part.Partition, decoder.NextOffset())
		part.Release()
	}
	return nil
}

// done removes a partition from those left once it has been read to its end.
func done(records *fetch.Poller, topic string, left map[int32]int64, partition int32, next int64) {
	if next >= left[partition] {
		delete(left, partition)
		records.Remove(topic, partition)
	}
}

func (t *Topic) poller(isolation fetch.Isolation) *fetch.Poller {
	return fetch.NewPoller(fetch.PollerConfig{Transport: t.Client.Transport, Bootstrap: t.Client.Addr, Isolation: isolation})
}

// next waits for the next records. Its patience starts over while some partition was never fetched, because only
// fetched partitions show what they wait for.
func (t *Topic) next(ctx context.Context, records *fetch.Poller) (*fetch.PartitionData, error) {
	for {
		part, err := t.poll(ctx, records)
		if err == nil || ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return part, err
		}
		troubles := records.Troubles()
		if len(troubles) == 0 {
			return nil, fmt.Errorf("topic %s cannot be read to its end because of an open transaction, perhaps of a replay that was interrupted: "+
				"try again when the brokers have given it up, at the latest after its transaction timeout", t.Name)
		}
		for _, trouble := range troubles {
			if !errors.Is(trouble.Err, fetch.ErrNotYetFetched) {
				return nil, fmt.Errorf("topic %s cannot be read: %w", t.Name, trouble.Err)
			}
		}
	}
}

// poll waits for records until the patience ends.
func (t *Topic) poll(ctx context.Context, records *fetch.Poller) (*fetch.PartitionData, error) {
	patience := t.Patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return records.Poll(patient)
}
