package pipeline

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/weir-stream/weir/state"
)

// Records that arrive together cost a fetch and a batch in each worker that has some of their partitions, even if they
// are few. So one worker processes all partitions while it can. All workers share them while batches are full, which
// means that more records arrive than are applied.

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
			s.balance(c.patience())
		}
		c.mu.Unlock()
	}
}

// load measures how much there was to do recently.
type load struct {
	full int64 // full batches until the last look, counted by fullness
	calm int   // looks without a full batch
}

// Load is high if there were at least this many full batches since the last look, and low after
// this many looks without one.
const (
	muchFull   = 8
	littleCalm = 5
)

// fullness returns as how many batches a full one counts: a setting for longer batches does not change how many records
// make the load high.
func fullness(events, bytes int) int64 { return int64(max(1, events/2000, bytes/(4<<20))) }

// look takes the number of full batches so far, and reports whether the load is high, or has been low for a while.
func (l *load) look(full int64) (much, little bool) {
	since := full - l.full
	l.full = full
	l.calm++
	if since > 0 {
		l.calm = 0
	}
	return since >= muchFull, l.calm >= littleCalm
}

// balance moves partitions between the workers according to the load. The next worker reads again what is not flushed
// in time.
func (s *pool) balance(within time.Duration) {
	full := int64(0)
	for _, w := range s.workers {
		if w != nil {
			full += w.fulls.Load()
		}
	}
	much, little := s.lately.look(full)
	carrying := len(s.load) - countOf(s.load, 0)
	switch all := s.partitions(); {
	case much && carrying == 1 && len(all) > 1:
		s.p.log.Debug("all workers share the partitions", "partitions", len(all))
		stay := (len(all) + len(s.load) - 1) / len(s.load)
		s.release(all[stay:], within)
		s.accept(all[stay:])
	case little && carrying > 1 && s.p.health.err() == nil: // else the load may be low because nothing is applied
		s.p.log.Debug("one worker processes all partitions", "partitions", len(all))
		first := s.of[all[0]]
		others := slices.DeleteFunc(all, func(id state.Partition) bool { return s.of[id] == first })
		s.release(others, within)
		s.give(first, others)
	}
}

// partitions lists the workers' partitions, so that each topic is spread over the list.
func (s *pool) partitions() []state.Partition {
	all := make([]state.Partition, 0, len(s.of))
	for id := range s.of {
		all = append(all, id)
	}
	slices.SortFunc(all, func(a, b state.Partition) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Topic, b.Topic)) })
	return all
}

// give assigns partitions to one worker.
func (s *pool) give(i int, partitions []state.Partition) {
	for _, id := range partitions {
		s.load[i]++
		s.of[id] = i
	}
	s.send(i, change{take: partitions})
}

func countOf(list []int, value int) (n int) {
	for _, v := range list {
		if v == value {
			n++
		}
	}
	return n
}
