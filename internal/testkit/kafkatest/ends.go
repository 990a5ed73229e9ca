package kafkatest

import (
	"context"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/state"
)

// Ends returns the end offsets of partitions at an isolation level.
func Ends(ctx context.Context, client *kafka.Client, partitions []state.Partition, isolation kafka.IsolationLevel) (map[state.Partition]int64, error) {
	asked := map[string][]kafka.OffsetRequest{}
	for _, p := range partitions {
		asked[p.Topic] = append(asked[p.Topic], kafka.LastOffsetOf(int(p.ID)))
	}
	reply, err := client.ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked, IsolationLevel: isolation})
	if err != nil {
		return nil, err
	}
	found := map[state.Partition]int64{}
	for topic, list := range reply.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, p.Error
			}
			found[state.Partition{Topic: topic, ID: int32(p.Partition)}] = p.LastOffset
		}
	}
	return found, nil
}
