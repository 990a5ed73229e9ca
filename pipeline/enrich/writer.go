package enrich

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/state"
)

// requestBytes is the size at which a request of enriched events is full;
// brokers take a megabyte by default.
const requestBytes = 512 << 10

// writer writes enriched events, those of one partition in order.
type writer struct {
	client *kafka.Client
}

// write writes events and returns, by index, why one could not be written; nil if all were. After a failed event no
// other of the same partition is written: a topic must stay in order when writing is retried.
func (w *writer) write(ctx context.Context, events []*Event) map[int]error {
	partitions, unknown := w.partitions(ctx, events)
	waiting := map[int]error{} // by range: nothing of it is written, or all tries would write its other events again
	for _, n := range events {
		if err := cmp.Or(unknown[n.partition.Topic], unknown[n.stream.topic]); err != nil {
			waiting[n.Range] = err
		}
	}
	failures := map[int]error{}
	queues := map[state.Partition][]int{}
	for i, n := range events {
		if err := waiting[n.Range]; err != nil {
			failures[i] = err
			continue
		}
		to := target(n, partitions)
		queues[to] = append(queues[to], i)
	}
	var mu sync.Mutex
	var writing sync.WaitGroup
	for to, queue := range queues {
		writing.Go(func() {
			written, err := w.writeTo(ctx, to, events, queue)
			mu.Lock()
			defer mu.Unlock()
			for _, i := range queue[written:] {
				failures[i] = err
			}
		})
	}
	writing.Wait()
	return failures
}

// partitions returns the numbers of partitions of the events' topics, and why those of some are unknown.
func (w *writer) partitions(ctx context.Context, events []*Event) (counts map[string]int, unknown map[string]error) {
	counts, unknown = map[string]int{}, map[string]error{}
	for _, n := range events {
		counts[n.partition.Topic], counts[n.stream.topic] = 0, 0
	}
	topics := slices.Collect(maps.Keys(counts))
	found, err := w.client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		for _, topic := range topics {
			unknown[topic] = err
		}
		return counts, unknown
	}
	for _, t := range found.Topics {
		switch {
		case t.Error != nil:
			unknown[t.Name] = fmt.Errorf("topic %q: %w", t.Name, t.Error)
		case len(t.Partitions) == 0:
			unknown[t.Name] = fmt.Errorf("topic %q: the brokers name no partitions of it", t.Name)
		}
		counts[t.Name] = len(t.Partitions)
	}
	return counts, unknown
}

// target returns the partition that an event is written to: the one with its own number if the topics have equally
// many, else one by its key, or without a key by its partition's number.
func target(n *Event, partitions map[string]int) state.Partition {
	to := state.Partition{Topic: n.stream.topic, ID: n.partition.ID}
	count := partitions[to.Topic]
	switch {
	case count == partitions[n.partition.Topic]:
	case n.key == nil:
		to.ID %= int32(count)
	default:
		to.ID = int32(byKey.Balance(kafka.Message{Key: n.key}, numbers(count)...))
	}
	return to
}

// byKey distributes keys like Kafka's own producers.
var byKey kafka.Murmur2Balancer

// numbers returns those from 0 to n-1.
func numbers(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// writeTo writes a queue of events to a partition, one request at a time, each after the previous
// one is acknowledged. It returns how many were written, and why not all.
func (w *writer) writeTo(ctx context.Context, to state.Partition, events []*Event, queue []int) (written int, err error) {
	most := len(queue) // of a request
	for written < len(queue) {
		var records []kafka.Record
		for size := 0; len(records) < min(most, len(queue)-written); {
			n := events[queue[written+len(records)]]
			if size += n.size(); size > requestBytes && len(records) > 0 {
				break
			}
			records = append(records, n.record())
		}
		reply, err := w.client.Produce(ctx, &kafka.ProduceRequest{
			Topic: to.Topic, Partition: int(to.ID), RequiredAcks: kafka.RequireAll, Records: kafka.NewRecordReader(records...),
		})
		if err == nil {
			err = reply.Error
		}
		switch {
		case errors.Is(err, kafka.MessageSizeTooLarge) && len(records) > 1:
			most = len(records) / 2 // the topic's max.message.bytes is small, and may hold them one by one
			continue
		case err != nil:
			return written, err
		}
		written += len(records)
	}
	return written, nil
}
