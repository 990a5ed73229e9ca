package fetch

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// EpochQuery asks the leader of a partition where one of its log's epochs ends.
type EpochQuery struct {
	Partition           state.Partition
	Leader, LeaderEpoch int32 // as of a Log
	Epoch               int32
}

// EpochEnd is where an epoch ends in a log. If a position in that epoch or an earlier one lies beyond Offset, this log
// does not have the record before it.
type EpochEnd struct {
	// Epoch is the last epoch of the log that is not after the requested one. Offset is where the next epoch begins, or
	// the end of the log. Both are -1 if the leader does not know.
	Epoch  int32
	Offset int64
	Err    error
}

var cannotTell = EpochEnd{Epoch: -1, Offset: -1}

// EpochEnds asks the leaders, with one request for each leader, and some more if several epochs of a partition are
// asked for. For a broker that does not support the request, the ends are unknown.
func (p *Poller) EpochEnds(ctx context.Context, queries []EpochQuery) []EpochEnd {
	ends := make([]EpochEnd, len(queries))
	type request struct {
		leader int32
		turn   int // a partition may be in a request only once
	}
	requests, turns := make(map[request][]int), make(map[state.Partition]int)
	for i, q := range queries {
		r := request{q.Leader, turns[q.Partition]}
		requests[r] = append(requests[r], i)
		turns[q.Partition]++
	}
	var asking sync.WaitGroup // at the same time: one that hangs must not use up the time of the others
	for r, some := range requests {
		asking.Go(func() { p.epochEnds(ctx, r.leader, queries, ends, some) })
	}
	asking.Wait()
	return ends
}

func (p *Poller) epochEnds(ctx context.Context, broker int32, queries []EpochQuery, ends []EpochEnd, some []int) {
	asked := ask{what: "epochs", broker: broker, waiting: make(map[state.Partition]int), fail: func(i int, err error) { ends[i] = EpochEnd{Err: err} }}
	var topics ByTopic[kmsg.OffsetForLeaderEpochRequestTopic]
	for _, i := range some {
		q := &queries[i]
		part := kmsg.NewOffsetForLeaderEpochRequestTopicPartition()
		part.Partition, part.CurrentLeaderEpoch, part.LeaderEpoch = q.Partition.ID, q.LeaderEpoch, q.Epoch
		t := topics.Of(q.Partition.Topic, kmsg.NewOffsetForLeaderEpochRequestTopic)
		t.Topic, t.Partitions = q.Partition.Topic, append(t.Partitions, part)
		asked.waiting[q.Partition] = i
	}
	req := kmsg.NewPtrOffsetForLeaderEpochRequest()
	req.ReplicaID, req.Topics = -1, topics.Topics
	kresp, err := p.exchanger.do(ctx, requestTimeout, broker, req, 0, new([]byte))
	if _, unsupported := errors.AsType[*unsupportedError](err); unsupported {
		for _, i := range asked.waiting {
			ends[i] = cannotTell
		}
		return
	}
	if err == nil {
		for _, t := range kresp.(*kmsg.OffsetForLeaderEpochResponse).Topics {
			for _, part := range t.Partitions {
				i, ok := asked.answered(t.Topic, part.Partition, part.ErrorCode)
				switch {
				case !ok:
				case part.LeaderEpoch < 0 || part.EndOffset < 0:
					ends[i] = cannotTell
				default:
					ends[i] = EpochEnd{Epoch: part.LeaderEpoch, Offset: part.EndOffset}
				}
			}
		}
	}
	asked.end(err)
}
