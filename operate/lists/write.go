package lists

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/pipeline/retry"
)

// Written is the record of a change, see Record.
type Written struct {
	Value        string // as lists have it
	Key, Content []byte
}

// ErrTooLarge is the error for changes that are too large to be written together.
var ErrTooLarge = errors.New("the changes have more than 900 KiB together: make fewer at once")

// maxWritten keeps a batch below the limit that brokers have by default.
const maxWritten = 900 << 10

// Write writes changes to the topic of a list, all of them or none: they are one batch of records, since all changes of
// a list are in one partition. It tries again until ctx ends. After an error it may be unknown whether they were
// written; writing them again changes nothing else.
func Write(ctx context.Context, client *kafka.Client, list *features.Table, changes []Written) error {
	size := 0
	for _, c := range changes {
		const rest = 32 // of a record
		size += len(c.Key) + len(c.Content) + rest
	}
	if size > maxWritten {
		return ErrTooLarge
	}
	backoff := retry.Backoff{First: 50 * time.Millisecond, Longest: time.Second}
	for {
		err := write(ctx, client, list, changes)
		if err == nil {
			return nil
		}
		code, answered := errors.AsType[kafka.Error](err)
		if answered && (!code.Temporary() || code == kafka.UnknownTopicOrPartition) || !retry.Wait(ctx, backoff.Next()) {
			return fmt.Errorf("topic %s: %w", list.Rows.Topic, brokers.Plainly(err))
		}
	}
}

func write(ctx context.Context, client *kafka.Client, list *features.Table, changes []Written) error {
	topic := list.Rows.Topic
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	if err := found.Topics[0].Error; err != nil {
		return err
	}
	var records []kafka.Record
	for _, c := range changes {
		records = append(records, kafka.Record{Key: kafka.NewBytes(c.Key), Value: kafka.NewBytes(c.Content), Time: time.Now()})
	}
	answer, err := client.Produce(ctx, &kafka.ProduceRequest{
		Topic: topic, Partition: 0, // also once the topic has more: a removal counts in the partition of its entry
		RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
	})
	if err == nil {
		err = answer.Error
	}
	return err
}
