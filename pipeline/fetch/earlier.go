package fetch

import (
	"context"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
)

// Before is a question for where to begin to read a log, so that enough of what comes before an offset has been read there.
type Before struct {
	Offset int64
	Reach  int64 // how far back by the time of the log, in ms; 0 for nothing, and the answer is Offset
	Most   int64 // how many offsets at most
}

// Earlier looks up, for logs from Logs, from where to read: no record before that is needed, as it is too far from the
// offset, or as the records up to it are all older, by more than Reach, than the newest one before the offset. There may
// be more records than necessary after it, about half as long again as Reach. Logs without an answer get an error.
func (p *Poller) Earlier(ctx context.Context, partitions []state.Partition, logs []Log, asked []Before) []int64 {
	from := make([]int64, len(logs))
	var asking sync.WaitGroup
	for i, b := range asked {
		if from[i] = b.Offset; logs[i].Err == nil && b.Reach > 0 && b.Offset > logs[i].Start {
			asking.Go(func() { from[i] = p.earlier(ctx, partitions[i:i+1], logs[i:i+1], b) })
		}
	}
	asking.Wait()
	return from
}

// earlier looks it up for one log.
func (p *Poller) earlier(ctx context.Context, partition []state.Partition, log []Log, b Before) int64 {
	least := max(log[0].Start, b.Offset-b.Most)
	first := func(moment int64) int64 {
		if found := p.Since(ctx, partition, log, moment)[0]; log[0].Err == nil && 0 <= found.Offset && found.Offset < b.Offset {
			return found.Offset
		}
		return b.Offset
	}
	// A record before the offset is of `known` or newer, and none is of `beyond` or newer. The search begins at the clock,
	// on which only its length depends.
	known := time.Now().UnixMilli()
	beyond, step := known, b.Reach
	for first(known) == b.Offset {
		if log[0].Err != nil || known == 0 {
			return least // all timestamps are below 0
		}
		beyond, known, step = known, max(0, known-step), 2*step
	}
	for half := known + (beyond-known)/2; half-known > b.Reach/4 && log[0].Err == nil; half = known + (beyond-known)/2 {
		if first(half) < b.Offset {
			known = half
		} else {
			beyond = half
		}
	}
	if known < b.Reach {
		return least
	}
	return max(least, first(known-b.Reach))
}
