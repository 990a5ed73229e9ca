// Package lag reports how far each partition has been applied, and how many records are
// left.
package lag

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
)

// Progress reads for each partition its positions by shard, and the logs that they are of.
type Progress interface {
	Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error)
	// Log returns the log with the tag of a position.
	Log(ctx context.Context, tag string) (state.LogID, error)
}

// PartitionLag is the lag of one partition. Offsets are those of the next record.
type PartitionLag struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	// The log holds Start to End, the high watermark. Records from Stable on, the last stable
	// offset, cannot be read yet because of an open transaction. If uncommitted records are read,
	// Stable is End.
	Start  int64 `json:"start"`
	Stable int64 `json:"stable"`
	End    int64 `json:"end"`
	// Applied is the position of the shard that is furthest behind, or null if a shard has no progress yet. Furthest is
	// the position of the one furthest ahead, or null if none has progress.
	Applied  *int64 `json:"applied"`
	Furthest *int64 `json:"furthest"`
	// Committed is the group's offset in Kafka, which follows; null if there is none.
	Committed *int64 `json:"committed"`
	// Lag is the number of offsets up to End that some shard has still to apply. Of these, Open cannot be read yet, and
	// Lost are no longer in the log.
	Lag  int64 `json:"lag"`
	Open int64 `json:"open"`
	Lost int64 `json:"lost"`
	// OtherLog says that what was applied is of another log: the topic was made again, so all of it has still to be applied.
	OtherLog bool `json:"other_log,omitempty"`
	// OpenSince is the timestamp of the first record of the open transaction; null if none is open.
	OpenSince *time.Time `json:"open_since"`
	// Behind are the shards that are behind others.
	Behind []Shard `json:"behind,omitempty"`
	// Error says why it is unknown what the log holds: then the offsets of the log and the lag are 0. It is absent if the
	// leader has answered.
	Error string `json:"error,omitempty"`
}

// Shard is the progress of one shard; Applied is null if it has none.
type Shard struct {
	Shard   int    `json:"shard"`
	Applied *int64 `json:"applied"`
}

// Monitor reads the lag of partitions.
type Monitor struct {
	Client    *kafka.Client
	Isolation fetch.Isolation
	Group     string
	Store     Progress
}

// Read reads the lag of all partitions of topics, in order. That of a partition whose leader does not answer has an Error.
func (r *Monitor) Read(ctx context.Context, topics []string) ([]PartitionLag, error) {
	all, err := Partitions(ctx, r.Client, topics)
	if err != nil {
		return nil, err
	}
	asked := map[string][]int{}
	for _, p := range all {
		asked[p.Topic] = append(asked[p.Topic], int(p.ID))
	}
	// The store first: what is applied meanwhile must not make the lag negative.
	progress, err := r.Store.Progress(ctx, all)
	if err != nil {
		return nil, err
	}
	committed, err := r.committed(ctx, asked)
	if err != nil {
		return nil, err
	}
	logs, err := r.logs(ctx, all)
	if err != nil {
		return nil, err
	}
	list := make([]PartitionLag, len(all))
	for i, id := range all {
		other, err := r.other(ctx, &logs[i], progress[i])
		if err != nil {
			return nil, err
		}
		list[i] = partitionLag(id, &logs[i], progress[i], other, committed[id])
		if list[i].Open > 0 {
			list[i].OpenSince = r.timestamp(ctx, id, list[i].Stable)
		}
	}
	return list, nil
}

// Partitions lists the partitions of topics, in their order.
func Partitions(ctx context.Context, client *kafka.Client, topics []string) (all []state.Partition, err error) {
	found, err := client.Metadata(ctx, &kafka.MetadataRequest{Topics: topics})
	if err != nil {
		return nil, fmt.Errorf("read the topics: %w", err)
	}
	for _, topic := range topics {
		i := slices.IndexFunc(found.Topics, func(t kafka.Topic) bool { return t.Name == topic })
		if i < 0 || found.Topics[i].Error != nil {
			return nil, fmt.Errorf("topic %s: %w", topic, found.Topics[max(i, 0)].Error)
		}
		var ids []int
		for _, p := range found.Topics[i].Partitions {
			ids = append(ids, p.ID)
		}
		slices.Sort(ids)
		for _, id := range ids {
			all = append(all, state.Partition{Topic: topic, ID: int32(id)})
		}
	}
	return all, nil
}

// partitionLag computes the lag of a partition. other says that progress is of another log: then nothing of this one is applied.
func partitionLag(id state.Partition, held *fetch.Log, progress []state.Position, other bool, committed int64) PartitionLag {
	p := PartitionLag{
		Topic: id.Topic, Partition: id.ID,
		Applied: known(state.Lowest(progress)), Furthest: known(state.Highest(progress)), Committed: known(committed),
	}
	for shard, at := range progress {
		if p.Furthest != nil && at.Offset < *p.Furthest {
			p.Behind = append(p.Behind, Shard{shard, known(at.Offset)})
		}
	}
	if held.Err != nil {
		p.Error = brokers.Plainly(held.Err).Error()
		return p
	}
	p.Start, p.Stable, p.End = held.Start, held.Stable, held.End
	from := held.Start
	if p.OtherLog = other; p.Applied != nil && !other {
		from = max(from, *p.Applied)
		p.Lost = max(0, held.Start-*p.Applied)
	}
	p.Lag = max(0, held.End-from)
	p.Open = max(0, held.End-max(from, p.Stable))
	return p
}

// known returns an offset, nil if it is negative.
func known(offset int64) *int64 {
	if offset < 0 {
		return nil
	}
	return &offset
}

// committed reads the group's offsets, -1 for none. A group without members so far has none.
func (r *Monitor) committed(ctx context.Context, asked map[string][]int) (map[state.Partition]int64, error) {
	reply, err := r.Client.OffsetFetch(ctx, &kafka.OffsetFetchRequest{GroupID: r.Group, Topics: asked})
	if err == nil {
		err = reply.Error
	}
	offsets := map[state.Partition]int64{}
	if errors.Is(err, kafka.GroupIdNotFound) {
		for topic, ids := range asked {
			for _, id := range ids {
				offsets[state.Partition{Topic: topic, ID: int32(id)}] = -1
			}
		}
		return offsets, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the offsets of group %s: %w", r.Group, err)
	}
	for topic, list := range reply.Topics {
		for _, p := range list {
			if p.Error != nil {
				return nil, fmt.Errorf("read the offsets of group %s: %w", r.Group, p.Error)
			}
			offsets[state.Partition{Topic: topic, ID: int32(p.Partition)}] = p.CommittedOffset
		}
	}
	return offsets, nil
}

// other reports whether any of some positions is of another log than this one.
func (r *Monitor) other(ctx context.Context, log *fetch.Log, progress []state.Position) (bool, error) {
	asked := map[string]bool{"": true, log.ID.Tag(): true}
	for _, at := range progress {
		if asked[at.Log] || log.Err != nil {
			continue
		}
		asked[at.Log] = true
		was, err := r.Store.Log(ctx, at.Log)
		if err != nil || was.Contradicts(log.ID) {
			return true, err
		}
	}
	return false, nil
}

// logs looks up the partitions' logs.
func (r *Monitor) logs(ctx context.Context, all []state.Partition) ([]fetch.Log, error) {
	poller := fetch.NewPoller(fetch.PollerConfig{Transport: r.Client.Transport, Bootstrap: r.Client.Addr, Isolation: r.Isolation})
	defer poller.Close()
	return poller.Logs(ctx, all)
}

// timestamp reads the timestamp of the record at an offset, also in an open transaction; nil if no record can be read.
func (r *Monitor) timestamp(ctx context.Context, id state.Partition, offset int64) *time.Time {
	reply, err := r.Client.Fetch(ctx, &kafka.FetchRequest{
		Topic: id.Topic, Partition: int(id.ID), Offset: offset, MinBytes: 1, MaxBytes: 1 << 20, MaxWait: time.Second,
		IsolationLevel: kafka.ReadUncommitted,
	})
	if err == nil {
		err = reply.Error
	}
	if err != nil {
		return nil
	}
	record, err := reply.Records.ReadRecord()
	if err != nil {
		return nil // it has ended meanwhile, or cannot be decoded
	}
	at := record.Time.UTC()
	return &at
}
