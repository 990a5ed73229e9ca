package testkit

import (
	"testing"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// FirstPlacement places a partition in which no shard has progress at an offset. Its topic has one partition, and the
// positions name no log.
func FirstPlacement(p state.Partition, shards int, offset int64) state.Placement {
	first := state.Placement{Partition: p, From: make([]state.Position, shards), To: make([]state.Position, shards), Partitions: 1}
	for shard := range first.To {
		first.From[shard], first.To[shard] = state.NoPosition, state.Position{Offset: offset, Epoch: -1}
	}
	return first
}

// ParseFilling returns the progress of a fill from the fields that shards store; see package progress.
func ParseFilling(t testing.TB, ranges, at string) state.Filling {
	t.Helper()
	p, fields := state.Partition{Topic: "t"}, map[string]string{}
	if ranges != "" {
		fields[progress.RangeField("f", p)] = ranges
	}
	if at != "" {
		fields["fill:f:t/0"] = at
	}
	r, err := progress.Of(fields, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r.Filling(&state.Fill{ID: "f"}, p)
}
