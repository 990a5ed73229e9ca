package blackbox

import (
	"context"
	"fmt"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

// ReadCommitted reads a topic with the given number of partitions from start to end, without
// aborted records, by partition. No transaction may be open in the topic.
func ReadCommitted(ctx context.Context, broker *kafkatest.Broker, topic string, partitions int) (map[int32][]*kgo.Record, error) {
	var all []state.Partition
	for p := range partitions {
		all = append(all, state.Partition{Topic: topic, ID: int32(p)})
	}
	ends, err := kafkatest.Ends(ctx, broker.Client(), all, kafka.ReadUncommitted)
	if err != nil {
		return nil, err
	}
	left := map[int32]int64{} // ends of the partitions not yet read
	for p, end := range ends {
		if end > 0 {
			left[p.ID] = end
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(broker.Addrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := map[int32][]*kgo.Record{}
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
				records[r.Partition] = append(records[r.Partition], r)
			}
		})
	}
	return records, nil
}
