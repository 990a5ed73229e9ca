package inspector

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Progress is the progress of a shard.
type Progress struct {
	// Newest is the greatest timestamp of a record that the shard has applied, in milliseconds; 0
	// if there is none.
	Newest     int64
	Partitions map[state.Partition]Applied
	// Relogged means that the state has events of an earlier log of a topic.
	Relogged bool

	fields map[string]string
}

// Applied states how far a plan has applied a partition.
type Applied struct {
	state.Position
	Plan string // its version
}

// ShardProgress reads the progress of a shard.
func (s *Inspector) ShardProgress(ctx context.Context, shard int) (Progress, error) {
	key := keyspace.ProgressKey(s.tags[shard])
	fields, err := s.redis.HGetAll(ctx, key).Result()
	if err != nil {
		return Progress{}, fmt.Errorf("read %q: %w", key, err)
	}
	return newProgress(fields), nil
}

// newProgress parses the fields of a shard's progress, and skips unknown ones.
func newProgress(fields map[string]string) Progress {
	p := Progress{Partitions: map[state.Partition]Applied{}, fields: fields}
	p.Newest, _ = strconv.ParseInt(fields[keyspace.ClockField], 10, 64)
	logs, topics := 0, 0
	for field, text := range fields {
		topic, id, isPartition := strings.Cut(field, "/")
		switch {
		case strings.HasPrefix(field, keyspace.LogField("")):
			logs++
		case strings.HasPrefix(field, "topic:"):
			topics++
		}
		partition, notNumber := strconv.ParseInt(id, 10, 32)
		at, err := state.ParsePosition(text)
		if isPartition && notNumber == nil && err == nil && !strings.Contains(topic, ":") {
			topic, plan, _ := strings.Cut(topic, "@")
			p.Partitions[state.Partition{Topic: topic, ID: int32(partition)}] = Applied{at, plan}
		}
	}
	p.Relogged = logs > topics
	return p
}

// Filling returns the progress of a fill with a partition.
func (p *Progress) Filling(f *state.Fill, of state.Partition) (state.Filling, error) {
	return state.ParseFilling(p.fields[keyspace.RangeField(f, of)], p.fields[keyspace.PartitionField(f.Partition(of))])
}
