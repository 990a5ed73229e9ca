package deadletter

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features/record"
)

const (
	// newestOffsets is how many offsets of each partition Newest looks at, at most.
	newestOffsets = 256
	// newestBytes bounds the keys and values of the records that it looks at together.
	newestBytes = 16 << 20
)

// errTooLarge ends the reading of records that are too large together.
var errTooLarge = errors.New("too large")

// Newest returns the newest letters that a filter selects among the last records of each partition,
// latest first, with the original records. It looks at fewer records if these are large, so that it
// reads a bounded part of the topic.
func Newest(ctx context.Context, topic *Topic, filter *Filter, most int) ([]*Letter, error) {
	return newest(ctx, topic, filter, most, newestBytes)
}

// newest is Newest within a number of bytes.
func newest(ctx context.Context, topic *Topic, filter *Filter, most, bytes int) ([]*Letter, error) {
	if err := filter.Check(); err != nil {
		return nil, err
	}
	for offsets := int64(newestOffsets); offsets > 0; offsets /= 4 {
		x, err := last(ctx, topic, filter, offsets, bytes)
		if errors.Is(err, errTooLarge) {
			continue
		}
		if err != nil {
			return nil, err
		}
		slices.Reverse(x.letters)
		return x.letters[:min(most, len(x.letters))], nil
	}
	return nil, fmt.Errorf("the last records of topic %s have more than %d MiB; look with weir deadletters", topic.Name, bytes>>20)
}

// last reads the last offsets of each partition. A letter's receipt comes after it in its partition, so it is also
// read.
func last(ctx context.Context, topic *Topic, filter *Filter, offsets int64, bytes int) (*index, error) {
	x := emptyIndex(topic)
	err := topic.readNewest(ctx, offsets, func(at RecordID, rec *record.Record) error {
		if bytes -= len(rec.Key) + len(rec.Value); bytes < 0 {
			return errTooLarge
		}
		x.add(at, rec, filter, true)
		return nil
	})
	if err != nil {
		return nil, err
	}
	x.finish()
	return x, nil
}
