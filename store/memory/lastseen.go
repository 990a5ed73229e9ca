package memory

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/weir-stream/weir/features/kinds"
)

// lastSeen are values with the time at which each was last met; of more than
// max, those met longest ago are put out.
type lastSeen struct {
	max    int
	times  map[string]int64
	sorted []seen // by time, then by value
}

type seen struct {
	time  int64
	value string
}

func (a seen) compare(b seen) int {
	return cmp.Or(cmp.Compare(a.time, b.time), strings.Compare(a.value, b.value))
}

func (l *lastSeen) apply(op *kinds.Op) (refusal string) {
	old, known := l.times[string(op.Member)]
	if known && op.Num <= old {
		return ""
	}
	value := string(op.Member)
	if known {
		i, _ := slices.BinarySearchFunc(l.sorted, seen{old, value}, seen.compare)
		l.sorted = slices.Delete(l.sorted, i, i+1)
	}
	l.times[value] = op.Num
	i, _ := slices.BinarySearchFunc(l.sorted, seen{op.Num, value}, seen.compare)
	l.sorted = slices.Insert(l.sorted, i, seen{op.Num, value})
	l.drop(len(l.sorted) - l.max)
	return ""
}

// drop puts out the n values met longest ago.
func (l *lastSeen) drop(n int) {
	for ; n > 0; n-- {
		delete(l.times, l.sorted[0].value)
		l.sorted = l.sorted[1:]
	}
}

// before is the number of values last met before a time.
func (l *lastSeen) before(time int64) int {
	i, _ := slices.BinarySearchFunc(l.sorted, seen{time: time}, seen.compare)
	return i
}

func (l *lastSeen) read(r *kinds.Read) kinds.Slice {
	from, to := l.before(r.First), len(l.sorted)
	if r.Last < math.MaxInt64 {
		to = l.before(r.Last + 1)
	}
	return kinds.Slice{
		Count: int64(max(0, to-from)), After: int64(len(l.sorted) - to),
		// Where an older value is kept, none in the window was put out.
		Capped: len(l.sorted) >= l.max && from == 0,
	}
}

func (l *lastSeen) prune(first int64) (empty bool) {
	l.drop(l.before(first))
	return len(l.sorted) == 0
}
