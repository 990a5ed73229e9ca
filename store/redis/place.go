package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	_ "embed"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

//go:embed place.lua
var placeLua string

//go:embed gap.lua
var gapLua string

// Place sets partitions' progress to where applying has not led it, with one pipeline for all. It
// returns how many positions of shards it changed: fewer than requested if some were not as found
// before.
func (s *Store) Place(ctx context.Context, placements ...state.Placement) (placed int, err error) {
	var calls progressCalls
	for first := 0; first < len(placements); first += callPartitions {
		some := placements[first:min(first+callPartitions, len(placements))]
		for shard, tag := range s.tags {
			var args []any
			for i := range some {
				args = appendPlacement(args, &some[i], shard)
			}
			if len(args) == 0 {
				continue
			}
			calls.add(placeLua, shard, tag, args, -1, func(reply []any) error {
				n, ok := reply[0].(int64)
				if !ok {
					return errReply
				}
				placed += int(n)
				return nil
			})
		}
	}
	if err := calls.send(ctx, s); err != nil {
		return placed, fmt.Errorf("place %d partitions: %w", len(placements), err)
	}
	return placed, nil
}

// Gap records that records of a partition were skipped whose timestamps go up to a moment, in
// milliseconds, or to that of the newest record applied.
func (s *Store) Gap(ctx context.Context, p state.Partition, until int64) error {
	var calls progressCalls
	for shard, tag := range s.tags {
		calls.add(gapLua, shard, tag, []any{p.Topic, until}, -1, func([]any) error { return nil })
	}
	if err := calls.send(ctx, s); err != nil {
		return fmt.Errorf("note a gap in %s: %w", keyspace.PartitionField(p), err)
	}
	return nil
}

func appendPlacement(args []any, p *state.Placement, shard int) []any {
	from, to := p.From[shard], p.To[shard]
	if from == to {
		return args
	}
	found, gap := "", ""
	if from.Exists() {
		found = from.String()
	}
	if p.Gap > 0 {
		gap = strconv.FormatInt(p.Gap, 10)
	}
	topic, version, _ := strings.Cut(p.Partition.Topic, "@")
	return append(args, topic, p.Partition.ID, version, found, to.String(), gap, p.Log.Text(), p.Partitions)
}
