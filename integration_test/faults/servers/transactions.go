package servers

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// Kafka 4.3 leaves transactions hanging when a broker starts that leads all partitions, as a single
// broker does. Until the broker is unfenced, partitions have no leader. Its coordinator already
// aborts expired transactions, and takes those partitions for deleted
// (KRaftMetadataCache.getPartitionLeaderEndpoint is empty for both). It then records the
// transaction as aborted although no log has a marker, and no marker is ever written.

// openTransaction is a transaction that is open in a log.
type openTransaction struct {
	partition state.Partition
	producer  kmsg.DescribeProducersResponseTopicPartitionActiveProducer
}

// AbortHanging aborts the transactions that are open in the logs of partitions and unknown to every
// coordinator, as kafka-transactions.sh does with find-hanging and abort. It returns how many there
// were, by producer.
func (b *Broker) AbortHanging(ctx context.Context, partitions []state.Partition) (n int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	open, err := openTransactions(ctx, client, partitions)
	if err != nil || len(open) == 0 {
		return 0, err
	}
	known, err := knownToCoordinators(ctx, client) // after the logs, so that a new transaction is not mistaken for a hanging one
	if err != nil {
		return 0, err
	}
	aborted := map[int64]bool{}
	for _, t := range open {
		if known[t.producer.ProducerID] {
			continue
		}
		if err := t.abort(ctx, client); err != nil {
			return len(aborted), err
		}
		aborted[t.producer.ProducerID] = true
	}
	return len(aborted), nil
}

// openTransactions returns the open transactions in the logs of partitions.
func openTransactions(ctx context.Context, client *kgo.Client, partitions []state.Partition) (open []openTransaction, err error) {
	request := kmsg.NewPtrDescribeProducersRequest()
	for _, p := range partitions {
		request.Topics = append(request.Topics, kmsg.DescribeProducersRequestTopic{Topic: p.Topic, Partitions: []int32{p.ID}})
	}
	reply, err := request.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	for _, topic := range reply.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return nil, err
			}
			for _, producer := range partition.ActiveProducers {
				if producer.CurrentTxnStartOffset >= 0 {
					open = append(open, openTransaction{state.Partition{Topic: topic.Topic, ID: partition.Partition}, producer})
				}
			}
		}
	}
	return open, nil
}

// knownToCoordinators returns the producers whose transactions a coordinator will end.
func knownToCoordinators(ctx context.Context, client *kgo.Client) (map[int64]bool, error) {
	request := kmsg.NewPtrListTransactionsRequest()
	request.StateFilters = []string{"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"}
	known := map[int64]bool{}
	for _, shard := range client.RequestSharded(ctx, request) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		reply := shard.Resp.(*kmsg.ListTransactionsResponse)
		if err := kerr.ErrorForCode(reply.ErrorCode); err != nil {
			return nil, err // a coordinator that still loads knows no transactions
		}
		for _, t := range reply.TransactionStates {
			known[t.ProducerID] = true
		}
	}
	return known, nil
}

// abort writes the missing marker.
func (t openTransaction) abort(ctx context.Context, client *kgo.Client) error {
	request := kmsg.NewPtrWriteTxnMarkersRequest()
	request.Markers = []kmsg.WriteTxnMarkersRequestMarker{{
		ProducerID: t.producer.ProducerID, ProducerEpoch: int16(t.producer.ProducerEpoch),
		CoordinatorEpoch: max(0, t.producer.CoordinatorEpoch),
		Topics:           []kmsg.WriteTxnMarkersRequestMarkerTopic{{Topic: t.partition.Topic, Partitions: []int32{t.partition.ID}}},
	}}
	reply, err := request.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, marker := range reply.Markers {
		for _, topic := range marker.Topics {
			for _, partition := range topic.Partitions {
				if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
					return fmt.Errorf("abort the transaction of producer %d in %v: %w", t.producer.ProducerID, t.partition, err)
				}
			}
		}
	}
	return nil
}
