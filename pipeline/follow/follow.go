// Package follow keeps the tables of a process up to date: it reads topics whole, without a consumer group, and goes on at
// their ends, and it reads files again when they change.
package follow

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/pipeline/scan"
	"github.com/weir-stream/weir/tables"
)

// Config configures a Follower. All fields are required.
type Config struct {
	// Kafka returns how to read topics, and what to call once no more is read. It is called once for each table in a topic.
	Kafka func() (read scan.Config, close func(), err error)
	Log   *slog.Logger
}

// Follower keeps tables up to date.
type Follower struct {
	tables.Set
	cfg     Config
	metrics *metrics
	ctx     context.Context
	end     context.CancelFunc

	mu      sync.Mutex
	reading map[*tables.Held]context.CancelFunc
	running sync.WaitGroup
}

// New makes a Follower without tables. Close ends it.
func New(cfg Config) *Follower {
	f := &Follower{cfg: cfg, reading: map[*tables.Held]context.CancelFunc{}}
	f.metrics = newMetrics(f)
	f.ctx, f.end = context.WithCancel(context.Background())
	return f
}

// Take replaces the tables by others, such as those of changed definitions: new ones are read from now on, and those
// that are the same go on.
func (f *Follower) Take(all []*features.Table) {
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted, named := map[*tables.Held]bool{}, map[string]bool{}
	for _, h := range f.Set.Take(all) {
		wanted[h], named[h.Table.Name] = true, true
		if f.reading[h] != nil {
			continue
		}
		f.metrics.begin(h.Table)
		ctx, cancel := context.WithCancel(f.ctx)
		f.reading[h] = cancel
		f.running.Go(func() { f.follow(ctx, h) })
	}
	for h, cancel := range f.reading {
		if !wanted[h] {
			cancel()
			delete(f.reading, h)
			if !named[h.Table.Name] {
				f.metrics.forget(h.Table)
			}
		}
	}
}

// Close ends all reading.
func (f *Follower) Close() {
	f.end()
	f.running.Wait()
}

// again is how long to wait before a table is read again that could not be, and tooLarge that of one that was too large.
const (
	again    = time.Second
	tooLarge = time.Minute
)

func (f *Follower) follow(ctx context.Context, h *tables.Held) {
	if h.Table.File != "" {
		newFile(h, f).follow(ctx)
		return
	}
	(&topic{Held: h, follower: f}).follow(ctx)
}

// fail says why a table cannot be read now, in the log once for the same reason.
func (f *Follower) fail(h *tables.Held, err error) {
	_, _, _, before := h.State(time.Now())
	h.Fail(err)
	if before == nil || before.Error() != err.Error() {
		f.cfg.Log.Warn("a table cannot be read", "table", h.Table.Name, "error", err)
	}
}
