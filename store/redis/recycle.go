package redisstore

import (
	"sync"

	"github.com/weir-stream/weir/state"
)

// Slices are long, and most have one bucket. Memory that was used a moment ago is in the caches of
// the processor; what is allocated for each question is not.

// recycled are lists of slices with nothing in them but room for a few buckets each.
var recycled = sync.Pool{New: func() any { return new([]state.WindowState) }}

// mostRecycled and mostBuckets bound the slices of a list, and the room in each, that are kept for the next
// question: larger ones are rare.
const mostRecycled, mostBuckets = 1 << 10, 8

// newSlices are n slices with nothing in them.
func newSlices(n int) []state.WindowState {
	list := recycled.Get().(*[]state.WindowState)
	if cap(*list) < n {
		return make([]state.WindowState, n)
	}
	return (*list)[:n]
}

// Recycle takes back slices that were read, with which the caller is done.
func (s *Store) Recycle(slices []state.WindowState) {
	if len(slices) == 0 || cap(slices) > mostRecycled {
		return
	}
	for i := range slices {
		room := slices[i].Buckets
		if cap(room) > mostBuckets {
			room = nil
		}
		clear(room)
		slices[i] = state.WindowState{Buckets: room[:0]}
	}
	recycled.Put(&slices)
}
