package blackbox

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
)

// ReadCommitted reads a topic of so many partitions from its start to its end,
// without what was rolled back, by partition. No transaction may be open in it.
func ReadCommitted(ctx context.Context, broker *kafkatest.Broker, topic string, partitions int) (map[int32][]*kgo.Record, error) {
	asked := map[string][]kafka.OffsetRequest{}
	for p := range partitions {
		asked[topic] = append(asked[topic], kafka.LastOffsetOf(p))
	}
	reply, err := broker.Client().ListOffsets(ctx, &kafka.ListOffsetsRequest{Topics: asked})
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{} // ends of the partitions that are not read
	for _, p := range reply.Topics[topic] {
		if p.Error != nil {
			return nil, p.Error
		}
		if p.LastOffset > 0 {
			left[int32(p.Partition)] = p.LastOffset
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	all := map[int32][]*kgo.Record{}
	for len(left) > 0 {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil, fmt.Errorf("topic %s is not read to its ends %v: %w", topic, left, ctx.Err())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset == left[r.Partition]-1 {
				delete(left, r.Partition)
			}
			if !r.Attrs.IsControl() {
				all[r.Partition] = append(all[r.Partition], r)
			}
		})
	}
	return all, nil
}
