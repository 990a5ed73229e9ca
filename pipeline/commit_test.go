package pipeline

import (
	"maps"
	"testing"
	"time"

	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/state"
)

// Offsets that have not moved are committed again only once a minute, and in another generation.
func TestUnmovedOffsetsAreNotCommitted(t *testing.T) {
	a, b := state.Partition{Topic: "a"}, state.Partition{Topic: "b"}
	first, second := new(group.Generation), new(group.Generation)
	first.ID, second.ID = 1, 2
	start := time.UnixMilli(0)
	var before commitLog
	for i, step := range []struct {
		generation *group.Generation
		after      time.Duration
		offsets    map[state.Partition]int64
		lost       bool // the brokers refuse them
		want       map[state.Partition]int64
	}{
		{first, 0, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{first, 1, map[state.Partition]int64{a: 1, b: 1}, false, nil},
		{first, 2, map[state.Partition]int64{a: 2, b: 1}, true, map[state.Partition]int64{a: 2}},
		{first, 3, map[state.Partition]int64{a: 2, b: 1}, false, map[state.Partition]int64{a: 2}},
		{first, 4, map[state.Partition]int64{a: 1}, false, map[state.Partition]int64{a: 1}}, // read again from further back
		{second, 5, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{second, 64, map[state.Partition]int64{a: 1, b: 1}, false, nil},
		{second, 65, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{second, 66, map[state.Partition]int64{a: 1, b: 1}, false, nil},
	} {
		got := before.changes(step.generation, step.offsets, start.Add(step.after*time.Second))
		if !maps.Equal(got, step.want) {
			t.Errorf("step %d committed %v, want %v", i, got, step.want)
		}
		if !step.lost {
			maps.Copy(before.offsets, got)
		}
	}
}
