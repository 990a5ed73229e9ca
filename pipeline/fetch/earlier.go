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
// offset, or as the records up to it are all older, by more than Reach, than the newest of those right before the offset. Logs
// without an answer get an error.
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

// earlier looks it up for one log. Brokers find offsets by the timestamps of all records, also of those that nobody gets: of
// transactions that were rolled back, and the marks at the end of each, which have the time at which they were written. So the
// newest record before the offset has to be read. All before the first record of a timestamp are older, whatever is among them.
func (p *Poller) earlier(ctx context.Context, partition []state.Partition, log []Log, b Before) int64 {
	least := max(log[0].Start, b.Offset-b.Most)
	newest, found := p.newestBefore(ctx, partition[0], &log[0], b.Offset, least)
	if !found || newest < b.Reach {
		return least
	}
	at := p.Since(ctx, partition, log, newest-b.Reach)[0]
	if log[0].Err != nil || at.Offset < 0 || at.Offset > b.Offset {
		return b.Offset // an error, as the newest one is not older than that
	}
	return max(least, at.Offset)
}

const (
	// nearby is how many offsets before an offset are first looked at.
	nearby = 256
	// newestWithin is how long the newest record is looked for. What is not found by then is read.
	newestWithin = 5 * time.Second
)

// newestBefore returns the greatest timestamp of some records before an offset, in ms, that include the last one. There may be none
// from the least offset on, or none that can be read.
func (p *Poller) newestBefore(ctx context.Context, partition state.Partition, log *Log, offset, least int64) (newest int64, found bool) {
	ctx, cancel := context.WithTimeout(ctx, newestWithin)
	defer cancel()
	for back := int64(nearby); !found; back *= nearby {
		from := max(least, offset-back)
		newest, found = p.newestIn(ctx, partition, log, from, offset)
		if from == least || ctx.Err() != nil {
			break
		}
	}
	return newest, found
}

// newestIn returns the greatest timestamp of the records from an offset up to another one.
func (p *Poller) newestIn(ctx context.Context, partition state.Partition, log *Log, from, to int64) (newest int64, found bool) {
	cfg := p.cfg
	cfg.Pace, cfg.PartitionMaxBytes = 0, 64<<10
	reader := NewPoller(cfg)
	defer reader.Close()
	reader.Resume(partition.Topic, partition.ID, Known{Offset: from, Epoch: -1, LeaderEpoch: log.LeaderEpoch, Log: log.ID})
	var d Decoder
	var r Record
	for next := from; next < to; next = d.NextOffset() {
		part, err := reader.Poll(ctx)
		if err != nil {
			break
		}
		d.Reset(part)
		for {
			ok, err := d.Next(&r)
			if err != nil {
				part.Release()
				return newest, found
			}
			if !ok || r.Offset >= to {
				break
			}
			if !found || r.Timestamp > newest {
				newest, found = r.Timestamp, true
			}
		}
		part.Release()
	}
	return newest, found
}
