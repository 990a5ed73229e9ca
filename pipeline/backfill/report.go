package backfill

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"
)

// reporter logs the progress of a fill.
type reporter struct {
	log      *slog.Logger
	each     time.Duration
	features string

	pace   pace // of the current work
	logged time.Time

	mu       sync.Mutex // of what follows: trouble may come from several goroutines
	troubled time.Time
}

// progress reports the fill's progress.
func (r *reporter) progress(p Progress) {
	now := time.Now()
	switch {
	case p.Done:
		if !r.pace.began.IsZero() {
			r.log.Info("the assigned partitions are backfilled", "features", r.features, "records", p.All, "after", now.Sub(r.pace.began).Round(time.Millisecond))
		}
		r.pace = pace{}
	case p.Filled == p.All: // what else is left is given up, or not known yet
	case r.pace.began.IsZero():
		r.pace.note(p, now)
		r.logged = now
	case now.Sub(r.logged) >= r.each:
		r.logged = now
		attrs := []any{"features", r.features, "done", fmt.Sprintf("%.1f%%", math.Floor(1000*float64(p.Filled)/float64(p.All))/10), "left", p.All - p.Filled}
		if left := r.pace.left(p, now); left > 0 {
			attrs = append(attrs, "time_left", left)
		}
		r.log.Info("backfilling", attrs...)
	}
}

// sayAgain is how often a lasting trouble is logged.
const sayAgain = 30 * time.Second

// trouble logs an error, but not too often, and not that the work is to end.
func (r *reporter) trouble(err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.troubled) >= sayAgain {
		r.troubled = now
		r.log.Warn("backfilling fails, trying again", "error", err)
	}
}
