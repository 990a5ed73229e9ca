package main

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// Kafka 4.3 leaves transactions hanging when a broker starts that is the leader of all, as a
// lone one is: partitions have no leader until the broker is let in again, and its coordinator,
// which already aborts what is due, takes those for deleted
// (KRaftMetadataCache.getPartitionLeaderEndpoint is empty for both). It then notes the
// transaction as aborted without a marker in any log, and nobody will ever write one.

// openTransaction is a transaction that a log holds open.
type openTransaction struct {
	partition state.Partition
	producer  kmsg.DescribeProducersResponseTopicPartitionActiveProducer
}

// abortHanging aborts the transactions that logs hold open and no coordinator knows of, as
// kafka-transactions.sh does with find-hanging and abort. It returns how many there were, by
// producer.
func (b *broker) abortHanging(ctx context.Context) (n int, err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	open, err := b.openTransactions(ctx, client)
	if err != nil || len(open) == 0 {
		return 0, err
	}
	known, err := knownToCoordinators(ctx, client) // after the logs: no new one is taken for hanging
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

// openTransactions are those of the partitions of the events.
func (b *broker) openTransactions(ctx context.Context, client *kgo.Client) (open []openTransaction, err error) {
	request := kmsg.NewPtrDescribeProducersRequest()
	for _, p := range b.partitions() {
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

// knownToCoordinators are the producers whose transactions will be ended.
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
			return nil, err // a coordinator that still loads does not know
		}
		for _, t := range reply.TransactionStates {
			known[t.ProducerID] = true
		}
	}
	return known, nil
}

// abort writes the marker that is missing.
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

// operatorLooks is how often an operator looks for transactions that hang.
const operatorLooks = 2 * time.Second
