package state

import (
	"math/bits"
	"slices"
)

// ShardSlices is the number of slices of a shard, see SliceOf.
const ShardSlices = 1 << sliceBits

const sliceBits = 6

// SliceOf returns the slice, 0 to ShardSlices-1, of an entity with a hash, see EntityHash. The slices of a shard divide
// its entities. An entity and its children are in the same one.
func SliceOf(hash uint64) int { return int(hash >> (64 - sliceBits)) }

// OffsetRange is the offsets from From up to, but excluding, To.
type OffsetRange struct {
	From, To int64
	Without  SliceSet // the slices that it is not about
}

// SliceSet is a set of the slices of a shard, a bit for each.
type SliceSet uint64

// AllSlices is the set of all slices.
const AllSlices = ^SliceSet(0)

// slicesFrom returns the set of the slices from one up to, but excluding, another.
func slicesFrom(from, to int) SliceSet { return SliceSet(1)<<to - SliceSet(1)<<from }

// Has reports whether a slice is in the set.
func (s SliceSet) Has(slice int) bool { return s>>slice&1 != 0 }

func (s SliceSet) size() int64 { return int64(bits.OnesCount64(uint64(s))) }

// RangesBetween returns the offsets from one position to another, as ranges of the slices that have the same.
func RangesBetween(from, to Position) (ranges []OffsetRange) {
	edges := []int{0, from.Slices, to.Slices, ShardSlices}
	slices.Sort(edges)
	for i, slice := range edges[:len(edges)-1] {
		r := OffsetRange{From: from.In(slice), To: to.In(slice), Without: ^slicesFrom(slice, edges[i+1])}
		if slice == edges[i+1] {
			continue
		}
		if n := len(ranges) - 1; n >= 0 && ranges[n].From == r.From && ranges[n].To == r.To {
			ranges[n].Without &= r.Without
		} else {
			ranges = append(ranges, r)
		}
	}
	return ranges
}
