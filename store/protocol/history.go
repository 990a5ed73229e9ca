package protocol

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// History reads which plans wrote the state, over all shards: in one round trip, and a second one if a plan is not yet
// known. For shards whose server does not answer it has what was last known, and says so. It fails if no server
// answers.
func (p *Protocol) History(ctx context.Context) (*state.History, error) {
	h, _, err := p.history(ctx)
	return h, err
}

// HistoryWhile is History, which is superseded once a number that the caller counts is another one: whatever may lead to servers
// with other state than those that the history was read from.
func (p *Protocol) HistoryWhile(ctx context.Context, changes func() int64) (*state.History, error) {
	before := changes()
	h, err := p.History(ctx)
	if err == nil {
		h.Superseded = func() bool { return changes() != before }
	}
	return h, err
}

// historyOfServers is History with the runs of the servers. They are asked first: one that is restarted before the rest is read is
// not the one that was read.
func (p *Protocol) historyOfServers(ctx context.Context) (*state.History, error) {
	servers := p.engine.Servers(ctx)
	h, missing, err := p.history(ctx)
	if err == nil {
		h.Servers = p.past.keepRuns(servers, missing)
	}
	return h, err
}

// history also returns why shards are missing.
func (p *Protocol) history(ctx context.Context) (*state.History, []error, error) {
	var servers []*Server
	var asking sync.WaitGroup
	asking.Go(func() { servers = p.engine.Servers(ctx) })
	records, missing := p.read(ctx, Query{Records: p.allShards(), For: ToAnswer})
	asking.Wait()
	unknown := 0
	for shard, err := range missing {
		switch v := servers[shard]; {
		case errors.Is(err, state.ErrUnavailable):
			unknown++
		case err != nil:
			return nil, nil, fmt.Errorf("read the history: %w", err)
		case v != nil && records[shard].Evicted(v.Run, v.Evicted):
			records[shard].Lost()
		}
	}
	if unknown == len(missing) {
		return nil, nil, fmt.Errorf("read the history: %w", missing[0])
	}
	records = p.past.keep(records, missing)
	plans, err := p.plansOf(ctx, progress.Versions(records))
	if err != nil {
		return nil, nil, err
	}
	fills, err := p.fillsOf(ctx, progress.Fills(records))
	if err != nil {
		return nil, nil, err
	}
	h := progress.History(records, plans, fills)
	h.Slack = p.slack.Milliseconds()
	for _, v := range servers {
		if v != nil {
			h.Clock = max(h.Clock, v.Clock)
		}
	}
	h.Now = max(h.Newest, p.now().UnixMilli())
	if unknown > 0 {
		h.Missing = func(r *state.Read) error { return missing[p.shardOf(r.Entity)] }
	}
	return h, missing, nil
}

// past holds the last answer of each shard, for when its server does not answer.
type past struct {
	mu      sync.Mutex
	records []*progress.Record
	clocks  []int64
	runs    []string // of their servers
}

// keepRuns stores the runs of the servers of the shards, and fills in those of shards that did not answer.
func (p *past) keepRuns(servers []*Server, missing []error) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == nil {
		p.runs = slices.Repeat([]string{state.Unread}, len(servers))
	}
	for shard, v := range servers {
		switch {
		case missing[shard] != nil:
		case v == nil:
			p.runs[shard] = ""
		default:
			p.runs[shard] = v.Run
		}
	}
	return slices.Clone(p.runs)
}

// keep stores the records of the shards, and fills in the last records of those that did not answer.
func (p *past) keep(records []*progress.Record, missing []error) []*progress.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.records == nil {
		p.records = make([]*progress.Record, len(records))
	}
	for shard, r := range records {
		if missing[shard] == nil {
			p.records[shard] = r
		}
	}
	return slices.Clone(p.records)
}

// Clock returns the greatest timestamp, in milliseconds, of a record applied; 0 if there is none. For shards whose
// server does not answer it is the last known one, and their state is not read either. It fails if no server answers.
func (p *Protocol) Clock(ctx context.Context) (int64, error) {
	found := p.engine.Read(ctx, Query{Records: p.allShards(), Names: []string{progress.NewestField}, For: ToAnswer})
	p.past.mu.Lock()
	defer p.past.mu.Unlock()
	if p.past.clocks == nil {
		p.past.clocks = make([]int64, len(found))
	}
	unknown := 0
	for shard, f := range found {
		var now int64
		err := f.Err
		if text := f.Fields[progress.NewestField]; err == nil && text != "" {
			now, err = strconv.ParseInt(text, 10, 64)
		}
		switch {
		case errors.Is(err, state.ErrUnavailable):
			if unknown++; unknown == len(found) {
				return 0, fmt.Errorf("read the clock: %w", err)
			}
		case err != nil:
			return 0, fmt.Errorf("read the clock: %w", err)
		default:
			p.past.clocks[shard] = now
		}
	}
	return slices.Max(p.past.clocks), nil
}
