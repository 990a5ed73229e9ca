package pipeline

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
)

// Records that arrive together cost a fetch and a batch in each worker that has some of their partitions, even if they
// are few. So one worker processes all partitions while it can. While batches are full, which means that more records
// arrive than are applied, the workers share them, so that each has about as many records to apply.

// balance follows the load until the context ends.
func (c *consumer) balance(ctx context.Context, s *pool) {
	tick := time.NewTicker(c.p.cfg.BalanceInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		c.mu.Lock() // the group takes or gives no partitions meanwhile
		if ctx.Err() == nil {
			s.balance(c.flushTime())
		}
		c.mu.Unlock()
	}
}

// load measures how much there was to do recently.
type load struct {
	mu     sync.Mutex
	full   int64                     // full batches since the last look, counted by fullness
	mapped map[state.Partition]int64 // records since the last look

	calm        int // looks without a full batch
	sinceSpread int // looks since partitions were last spread
}

func newLoad() *load {
	return &load{mapped: make(map[state.Partition]int64), sinceSpread: looksBetweenSpreads}
}

const (
	// fullBatches is how many full batches since the last look make the load high.
	fullBatches = 8
	// calmLooks is after how many looks without a full batch the load is low.
	calmLooks = 5
	// looksBetweenSpreads is the least number of looks between two spreads, so that loads which change all the time
	// cost little.
	looksBetweenSpreads = 5
)

// fullness returns as how many batches a full one counts: a setting for longer batches does not change how many records
// make the load high.
func fullness(events, bytes int) int64 { return int64(max(1, events/2000, bytes/(4<<20))) }

// add counts a batch that is about to be applied.
func (l *load) add(b *workerBatch, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if full {
		l.full += fullness(b.events, b.bytes)
	}
	for o, n := range b.outcomes {
		l.mapped[b.partitions[o.rangeIndex].Partition] += int64(n)
	}
}

// look returns the records of each partition since the last look, and reports whether the load is high, or has been
// low for a while.
func (l *load) look() (mapped map[state.Partition]int64, high, low bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	full := l.full
	mapped, l.full, l.mapped = l.mapped, 0, make(map[state.Partition]int64)
	l.sinceSpread++
	l.calm++
	if full > 0 {
		l.calm = 0
	}
	return mapped, full >= fullBatches, l.calm >= calmLooks
}

// balance moves partitions between the workers according to the load. The next worker reads again what is not flushed
// in time.
func (s *pool) balance(within time.Duration) {
	mapped, high, low := s.recentLoad.look()
	busy := len(s.load) - countOf(s.load, 0) // workers that have partitions
	switch {
	case high && s.recentLoad.sinceSpread > looksBetweenSpreads:
		if to := spread(s.demand(mapped), s.of, len(s.load)); len(to) > 0 {
			s.p.log.Debug("the workers share the partitions by their load", "partitions", len(s.of), "moved", len(to))
			s.recentLoad.sinceSpread = 0
			s.move(to, within)
		}
	case low && busy > 1 && s.p.health.err() == nil: // else the load may be low because nothing is applied
		s.p.log.Debug("one worker processes all partitions", "partitions", len(s.of))
		one, to := slices.Index(s.load, slices.Max(s.load)), make(map[state.Partition]int)
		for id, i := range s.of {
			if i != one {
				to[id] = one
			}
		}
		s.move(to, within)
	}
}

// demand adds to the records of each partition that were mapped since the last look those that are left: together they
// are what there was to apply. While there is a backlog, as many are fetched of a short one as of a long one, so what was
// mapped does not show how uneven the load is.
func (s *pool) demand(mapped map[state.Partition]int64) map[state.Partition]int64 {
	for _, w := range s.workers {
		if w == nil {
			continue
		}
		for id, n := range w.poller.Left() {
			mapped[id] += n
		}
	}
	maps.DeleteFunc(mapped, func(id state.Partition, n int64) bool {
		_, has := s.of[id] // else it was released
		return !has || n == 0
	})
	return mapped
}

// spread returns the new workers of the partitions to move, so that all workers have about as much to do: the partition
// with the greatest demand comes first, and each goes to the worker that has the least so far. Partitions without demand
// stay. All stay unless the busiest worker would have a fifth less to do, since partitions that move are flushed and
// claimed again.
func spread(demand map[state.Partition]int64, of map[state.Partition]int, workers int) map[state.Partition]int {
	before, after := make([]int64, workers), make([]int64, workers)
	to := make(map[state.Partition]int)
	for _, id := range slices.SortedFunc(maps.Keys(demand), func(a, b state.Partition) int {
		return cmp.Or(cmp.Compare(demand[b], demand[a]), cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
	}) {
		least := of[id]
		for i := range after {
			if after[i] < after[least] {
				least = i
			}
		}
		before[of[id]] += demand[id]
		after[least] += demand[id]
		if least != of[id] {
			to[id] = least
		}
	}
	if slices.Max(after)*5 > slices.Max(before)*4 {
		return nil
	}
	return to
}

// move gives partitions to other workers.
func (s *pool) move(to map[state.Partition]int, within time.Duration) {
	s.release(slices.Collect(maps.Keys(to)), within)
	s.give(to)
}

// give assigns partitions to workers.
func (s *pool) give(to map[state.Partition]int) {
	shares := make([][]state.Partition, len(s.workers))
	for id, i := range to {
		s.load[i]++
		s.of[id] = i
		shares[i] = append(shares[i], id)
	}
	for i, share := range shares {
		if len(share) > 0 {
			s.send(i, change{take: share})
		}
	}
}

func countOf[T comparable](list []T, value T) (n int) {
	for _, v := range list {
		if v == value {
			n++
		}
	}
	return n
}
