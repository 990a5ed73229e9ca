package redisstore

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// An index finds all that was added under a hash since the last reset, however many slots it keeps.
func TestHashIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var x hashIndex
		added := map[uint64][]int{}
		hashes := rapid.Map(rapid.Uint64Range(0, 999), func(n uint64) uint64 { return n << 32 })
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				for _, h := range rapid.SliceOfN(hashes, 1, 300).Draw(t, "hashes") {
					x.add(h, x.used)
					added[h] = append(added[h], x.used-1)
				}
			},
			"reset": func(*rapid.T) {
				x.reset()
				clear(added)
			},
			"": func(t *rapid.T) {
				h := hashes.Draw(t, "hash")
				if got := slices.Sorted(x.find(h)); !slices.Equal(got, added[h]) {
					t.Errorf("%x: found %v, want %v", h, got, added[h])
				}
			},
		})
	})
}

// Slots that are no longer needed are given up, so that small batches need not clear them.
func TestHashIndexShrinks(t *testing.T) {
	var x hashIndex
	for i := range 1000 {
		x.add(uint64(i)<<32, i)
	}
	x.reset()
	x.reset()
	if len(x.slots) != 2048 {
		t.Errorf("%d slots after 1000 of 2048 were used, want as many", len(x.slots))
	}
	for range 10 {
		x.add(1<<32, 0)
		x.reset()
	}
	if len(x.slots) != leastSlots {
		t.Errorf("%d slots after one was used ten times, want %d", len(x.slots), leastSlots)
	}
}
