package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// A series is dead when no processor has had it in its definitions for a while.
// What entities still hold of it goes when they are compacted: keys expire, but
// those of an entity that is alive never do.

const (
	// deadAfter is how long nobody has used a series that is dead: longer than a
	// processor may hang, and than a roll back takes.
	deadAfter = 24 * time.Hour
	// deadSeriesAge is how old a list of the dead may be that says there are none.
	deadSeriesAge = 10 * time.Minute
)

// deadSeries are the tags of series that are dead.
type deadSeries struct {
	tags map[uint32]bool
	read time.Time
}

func (o *deadSeries) has(tag uint32) bool { return o.tags[tag] }

// markDead finds out which of the series that are met in compaction candidates are dead. A
// series may come back to life while the list is read, so where it names one it
// is read once more, after what it is about: what was appended to a series since
// it came back is not in what was read.
func (w *writer) markDead(ctx context.Context, candidates []candidate) error {
	if !w.holdsUnknown(candidates, func(uint32) bool { return true }) {
		return nil
	}
	if time.Since(w.dead.read) > deadSeriesAge {
		return w.readDeadSeries(ctx)
	}
	if w.holdsUnknown(candidates, w.dead.has) {
		return w.readDeadSeries(ctx)
	}
	return nil
}

// holdsUnknown says whether compaction candidates hold a series that is not known, of which
// something is true.
func (w *writer) holdsUnknown(candidates []candidate, is func(tag uint32) bool) (met bool) {
	var look func(group string, held []byte)
	look = func(group string, held []byte) {
		known := w.known[group]
		// What is damaged is told where it is compacted.
		_ = packed.Sections(held, func(tag uint32, body []byte) error {
			if packed.IsEmbedding(tag) {
				child, err := packed.ChildOf(tag, body)
				if of := w.embedded[group][tag]; of != nil {
					look(of.Group, child.Sections)
				} else {
					look("", child.Sections)
				}
				return err
			}
			met = met || known[tag] == nil && is(tag)
			return nil
		})
	}
	for _, h := range candidates {
		look(w.groupOf(h), h.held)
	}
	return met
}

// readDeadSeries lists the dead: series that were used, and not for long.
func (w *writer) readDeadSeries(ctx context.Context) error {
	used, err := w.store.SeriesUsed(ctx)
	if err != nil && !errors.Is(err, state.ErrUnavailable) {
		return err
	}
	// While a master does not answer, none is known to be dead.
	w.dead = deadSeries{tags: map[uint32]bool{}, read: time.Now()}
	for id, at := range used {
		if tag := (&state.Series{ID: id}).Tag(); time.Since(at) < deadAfter {
			w.dead.tags[tag] = false
		} else if _, alive := w.dead.tags[tag]; !alive {
			w.dead.tags[tag] = true
		}
	}
	return nil
}
