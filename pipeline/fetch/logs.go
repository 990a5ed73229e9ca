package fetch

import (
	"context"
	"fmt"
	"sync"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/state"
)

// Log describes a partition's log, as the brokers report it.
type Log struct {
	ID         state.LogID
	Partitions int // of the topic
	// Leader is the broker that leads the partition, in LeaderEpoch; -1 if that is unknown.
	Leader, LeaderEpoch int32
	// The log holds Start up to but not including End, the high watermark. Stable is the last stable offset, which
	// ReadCommitted does not read beyond; under ReadUncommitted it is End.
	Start, Stable, End int64
	// Err says why the lookup failed; all fields but Partitions and ID are meaningless then.
	Err error
}

// The timestamps by which ListOffsets returns the ends of a log.
const (
	latest   = -1
	earliest = -2
)

// Logs looks up the logs of partitions now: with one request for all their leaders and then one to each leader, all at
// the same time, for each end of the logs. It does not retry. It fails if the metadata cannot be read; each Log has an
// error of its own.
func (p *Poller) Logs(ctx context.Context, partitions []state.Partition) ([]Log, error) {
	var topics []string
	asked := make(map[string]bool)
	for _, id := range partitions {
		if !asked[id.Topic] {
			asked[id.Topic] = true
			topics = append(topics, id.Topic)
		}
	}
	found, err := p.metadata(ctx, AnyBroker, topics)
	if err != nil {
		return nil, err
	}
	logs := make([]Log, len(partitions))
	byLeader := make(map[int32][]int)
	for i, id := range partitions {
		at, err := found.leader(id)
		logs[i] = Log{ID: found.logs[id.Topic], Partitions: found.partitions[id.Topic], Leader: at.broker, LeaderEpoch: at.epoch}
		if err != nil {
			logs[i].Err = fmt.Errorf("fetch: offsets of %w", err)
			continue
		}
		byLeader[at.broker] = append(byLeader[at.broker], i)
	}
	var asking sync.WaitGroup // at the same time: one that hangs must not use up the time of the others
	for broker, some := range byLeader {
		asking.Go(func() { p.ends(ctx, broker, partitions, logs, some) })
	}
	asking.Wait()
	return logs, nil
}

// ends asks a leader where some of the logs begin and end. It asks for the last stable offset after the end: records that
// arrive between the two requests must not look like those of an open transaction.
func (p *Poller) ends(ctx context.Context, broker int32, partitions []state.Partition, logs []Log, some []int) {
	p.listOffsets(ctx, broker, partitions, logs, some, ReadUncommitted, earliest, func(l *Log, found *offsetFound) { l.Start = found.Offset })
	p.listOffsets(ctx, broker, partitions, logs, some, ReadUncommitted, latest, func(l *Log, found *offsetFound) {
		l.End, l.Stable = found.Offset, found.Offset
	})
	if p.cfg.Isolation == ReadCommitted {
		p.listOffsets(ctx, broker, partitions, logs, some, ReadCommitted, latest, func(l *Log, found *offsetFound) { l.Stable = min(found.Offset, l.End) })
	}
}

// listOffsets asks one leader for one offset of each log that has no error yet, and sets the error
// of those that failed.
func (p *Poller) listOffsets(ctx context.Context, broker int32, partitions []state.Partition, logs []Log, some []int,
	isolation Isolation, timestamp int64, take func(l *Log, found *offsetFound),
) {
	asked := ask{what: "offsets", broker: broker, waiting: make(map[state.Partition]int), fail: func(i int, err error) { logs[i].Err = err }}
	var topics ByTopic[kmsg.ListOffsetsRequestTopic]
	for _, i := range some {
		if logs[i].Err != nil {
			continue
		}
		id := partitions[i]
		part := kmsg.NewListOffsetsRequestTopicPartition()
		part.Partition, part.Timestamp, part.CurrentLeaderEpoch = id.ID, timestamp, logs[i].LeaderEpoch
		t := topics.Of(id.Topic, kmsg.NewListOffsetsRequestTopic)
		t.Topic, t.Partitions = id.Topic, append(t.Partitions, part)
		asked.waiting[id] = i
	}
	if len(asked.waiting) == 0 {
		return
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel, req.Topics = -1, isolation.protocol(), topics.Topics
	kresp, err := p.exchanger.do(ctx, requestTimeout, broker, req, 0, new([]byte))
	if err == nil {
		for _, t := range kresp.(*kmsg.ListOffsetsResponse).Topics {
			for _, part := range t.Partitions {
				if i, ok := asked.answered(t.Topic, part.Partition, part.ErrorCode); ok {
					take(&logs[i], &part)
				}
			}
		}
	}
	asked.end(err)
}

// offsetFound is the answer to a question for an offset.
type offsetFound = kmsg.ListOffsetsResponseTopicPartition

// Dated is the first record of a log that is not older than a moment.
type Dated struct {
	Offset    int64 // -1 where there is none
	Timestamp int64 // of it, in ms
}

// Since looks up, for logs from Logs, the first record whose timestamp is not before a moment in ms, 0 or later. All
// earlier records are older than the moment. Logs without an answer get an error.
func (p *Poller) Since(ctx context.Context, partitions []state.Partition, logs []Log, moment int64) []Dated {
	found := make([]Dated, len(logs))
	byLeader := make(map[int32][]int)
	for i := range logs {
		if logs[i].Err == nil {
			byLeader[logs[i].Leader] = append(byLeader[logs[i].Leader], i)
		}
	}
	var asking sync.WaitGroup
	for broker, some := range byLeader {
		asking.Go(func() {
			p.listOffsets(ctx, broker, partitions, logs, some, ReadUncommitted, moment, func(l *Log, at *offsetFound) {
				for _, i := range some {
					if &logs[i] == l {
						found[i] = Dated{at.Offset, at.Timestamp}
					}
				}
			})
		})
	}
	asking.Wait()
	return found
}
