package values

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/store/protocol"
)

// A series is garbage when no processor has had it in its definitions for a while. Compaction drops its remains.
//
// A step cannot ask for that: it decides on what it holds. So the list is read before, for the steps after. If a plan with the series
// came back meanwhile, the step must not use it: what the plan has appended may be in the value. A plan appends to a shard only once
// it has claimed partitions in its record, and a claim renames the record's last change, which the step holds too.
type garbage struct {
	tags    map[uint32]bool // see protocol.Protocol.Garbage
	changes []string        // names of the records' last changes, read before that
	read    time.Time
	wanted  atomic.Bool // a step has met a series that it does not know, and the list is too old for it
}

const (
	// garbageListAge is how old a list may be before it is read again, and garbageListPause how old at least.
	garbageListAge   = 10 * time.Minute
	garbageListPause = 10 * time.Second
)

// learn reads the list if steps want it.
func (g *garbage) learn(ctx context.Context, s *Store) {
	now := s.options.Now()
	if !g.wanted.Load() || now.Sub(g.read) < garbageListPause {
		return
	}
	g.read, g.tags, g.changes = now, nil, nil
	q := protocol.Query{}
	for shard := range s.options.Shards {
		q.Records = append(q.Records, shard)
	}
	var changes []string
	for _, found := range (records{s}).Read(ctx, q) {
		if found.Err != nil {
			return
		}
		changes = append(changes, found.Fields[progress.ChangeField])
	}
	if tags, err := s.Garbage(ctx); err == nil {
		g.tags, g.changes = tags, changes
		g.wanted.Store(false)
	}
}

// in returns whether an unknown series is garbage, for a step in a shard that holds the fields of the record.
func (g *garbage) in(shard int, fields map[string]string, now time.Time) func(tag uint32) bool {
	current := g.changes != nil && g.changes[shard] == fields[progress.ChangeField]
	return func(tag uint32) bool {
		if !current || now.Sub(g.read) >= garbageListAge {
			g.wanted.Store(true)
		}
		return current && g.tags[tag]
	}
}
