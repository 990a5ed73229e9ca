package keyspace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// A shard is in the slot in the middle of its part, also according to the server.
func TestShardsAreInTheMiddleOfTheirSlotRanges(t *testing.T) {
	client := redistest.NewCluster(t).Nodes[0].Client(t)
	for _, shards := range []int{1, 3, 16, 64, 1000, Slots} {
		step := max(1, shards/40)
		for shard := 0; shard < shards; shard += step {
			tag := ShardTag("weir", shard, shards)
			if !strings.HasPrefix(tag, fmt.Sprintf("{weir:%d", shard)) || len(tag) != len(fmt.Sprintf("{weir:%d}", shard))+suffixLength {
				t.Fatalf("the tag of shard %d is %s", shard, tag)
			}
			slot, err := client.ClusterKeySlot(t.Context(), tag+"group:entity").Result()
			if want := (2*shard + 1) * Slots / (2 * shards); err != nil || int(slot) != want {
				t.Errorf("shard %d of %d is in slot %d, error %v; want slot %d", shard, shards, slot, err, want)
			}
		}
	}
}

// For any number of masters with equal ranges of slots, the numbers of shards differ by at most
// one.
func TestShardsSpreadEvenly(t *testing.T) {
	for _, namespace := range []string{"weir", "a", "fraud-2026"} {
		for _, shards := range []int{16, 64, 100, 256} {
			for masters := 1; masters <= 40; masters++ {
				held := make([]int, masters)
				for shard := range shards {
					slot := SlotOf(strings.Trim(ShardTag(namespace, shard, shards), "{}"))
					held[slot*masters/Slots]++
				}
				least, most := shards, 0
				for _, n := range held {
					least, most = min(least, n), max(most, n)
				}
				if most-least > 1 {
					t.Errorf("%d shards of %s are spread unevenly over %d masters: %v", shards, namespace, masters, held)
				}
			}
		}
	}
}

// Tags are part of the layout: they never change.
func TestTags(t *testing.T) {
	for shard, want := range []string{"{weir:0dzj}", "{weir:1fmY}", "{weir:2btO}"} {
		if got := ShardTag("weir", shard, 16); got != want {
			t.Errorf("shard %d: %s, want %s", shard, got, want)
		}
	}
}

func BenchmarkTags(b *testing.B) {
	for b.Loop() {
		for shard := range 1024 {
			ShardTag("weir", shard, 1024)
		}
	}
}
