package fetch

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Range is the offsets that a partition holds: from Start up to but not including End.
type Range struct{ Start, End int64 }

// The timestamps that ask ListOffsets for the ends of a log.
const (
	latest   = -1
	earliest = -2
)

// Offsets looks up what the given partitions of a topic hold now. End is the last stable offset under ReadCommitted,
// otherwise the high watermark. It does not retry.
func (p *Poller) Offsets(ctx context.Context, topic string, partitions ...int32) (map[int32]Range, error) {
	found, err := p.metadata(ctx, []string{topic})
	if err != nil {
		return nil, err
	}
	byLeader := make(map[int32][]int32)
	for _, partition := range partitions {
		at, err := found.leader(topicPartition{topic, partition})
		if err != nil {
			return nil, fmt.Errorf("fetch: offsets of %w", err)
		}
		byLeader[at.broker] = append(byLeader[at.broker], partition)
	}
	ranges := make(map[int32]Range, len(partitions))
	for broker, partitions := range byLeader {
		of, err := p.offsetsOf(ctx, broker, topic, partitions, p.cfg.Isolation)
		if err != nil {
			return nil, err
		}
		for partition, r := range of {
			ranges[partition] = r
		}
	}
	return ranges, nil
}

// offsetsOf asks one leader for the ranges of its partitions.
func (p *Poller) offsetsOf(ctx context.Context, broker int32, topic string, partitions []int32, isolation Isolation,
) (map[int32]Range, error) {
	starts, err := p.listOffsets(ctx, broker, topic, partitions, isolation, earliest)
	if err != nil {
		return nil, err
	}
	ends, err := p.listOffsets(ctx, broker, topic, partitions, isolation, latest)
	if err != nil {
		return nil, err
	}
	ranges := make(map[int32]Range, len(partitions))
	for _, partition := range partitions {
		ranges[partition] = Range{starts[partition], ends[partition]}
	}
	return ranges, nil
}

// listOffsets asks one leader for one offset of each partition, and returns all of them or an error.
func (p *Poller) listOffsets(ctx context.Context, broker int32, topic string, partitions []int32, isolation Isolation,
	timestamp int64,
) (map[int32]int64, error) {
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	req.IsolationLevel = isolation.protocol()
	t := kmsg.NewListOffsetsRequestTopic()
	t.Topic = topic
	for _, partition := range partitions {
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition = partition
		part.Timestamp = timestamp
		t.Partitions = append(t.Partitions, part)
	}
	req.Topics = append(req.Topics, t)
	kresp, err := p.exchanger.do(ctx, p.cfg.RequestTimeout, broker, req, 0, new([]byte))
	if err != nil {
		return nil, fmt.Errorf("fetch: offsets of %s from broker %d: %w", topic, broker, err)
	}
	offsets := make(map[int32]int64, len(partitions))
	for _, t := range kresp.(*kmsg.ListOffsetsResponse).Topics {
		for _, part := range t.Partitions {
			if err := kerror(part.ErrorCode); err != nil {
				return nil, fmt.Errorf("fetch: offsets of %s/%d: %w", t.Topic, part.Partition, err)
			}
			offsets[part.Partition] = part.Offset
		}
	}
	for _, partition := range partitions {
		if _, ok := offsets[partition]; !ok {
			return nil, fmt.Errorf("fetch: offsets of %s/%d: broker %d left them out", topic, partition, broker)
		}
	}
	return offsets, nil
}
