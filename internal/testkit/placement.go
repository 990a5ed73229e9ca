package testkit

import "github.com/weir-stream/weir/state"

// FirstPlacement places a partition in which no shard has progress at an offset. Its topic has one partition, and the
// positions name no log.
func FirstPlacement(p state.Partition, shards int, offset int64) state.Placement {
	first := state.Placement{Partition: p, From: make([]state.Position, shards), To: make([]state.Position, shards), Partitions: 1}
	for shard := range first.To {
		first.From[shard], first.To[shard] = state.NoPosition, state.Position{Offset: offset, Epoch: -1}
	}
	return first
}
