package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// A series is garbage when no processor has had it in its definitions for a while. Compaction drops its remains: keys
// expire, but not those of entities with events.

const (
	// garbageAfter is how long a series must be unused to be garbage: longer than a processor may
	// hang, and longer than a rollback takes.
	garbageAfter = 24 * time.Hour
	// garbageListAge is how old a list without any garbage may be before it is read again.
	garbageListAge = 10 * time.Minute
)

// garbageSeries lists series by their tags, and which of them are garbage.
type garbageSeries struct {
	tags map[uint32]bool
	read time.Time
}

func (o *garbageSeries) has(tag uint32) bool { return o.tags[tag] }

// findGarbage finds which series in compaction candidates are garbage. A series may come back into
// use while the list is read. So if the list names one of these series, it is read once more, after
// the candidates: what was appended to the series since it came back is not in them.
func (w *writer) findGarbage(ctx context.Context, candidates []candidate) error {
	if !w.holdsUnknown(candidates, func(uint32) bool { return true }) {
		return nil
	}
	if time.Since(w.garbage.read) > garbageListAge {
		return w.readGarbage(ctx)
	}
	if w.holdsUnknown(candidates, w.garbage.has) {
		return w.readGarbage(ctx)
	}
	return nil
}

// holdsUnknown reports whether compaction candidates have an unknown series that satisfies is.
func (w *writer) holdsUnknown(candidates []candidate, is func(tag uint32) bool) (met bool) {
	var look func(group string, held []byte)
	look = func(group string, held []byte) {
		known := w.known[group]
		// Damage is reported by the compaction.
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

// readGarbage lists all series that were ever used, and which of them are garbage.
func (w *writer) readGarbage(ctx context.Context) error {
	used, err := w.store.SeriesUsed(ctx)
	if err != nil && !errors.Is(err, state.ErrUnavailable) {
		return err
	}
	// While a master does not answer, no series is known to be garbage.
	w.garbage = garbageSeries{tags: map[uint32]bool{}, read: time.Now()}
	for id, at := range used {
		if tag := (&state.Series{ID: id}).Tag(); time.Since(at) < garbageAfter {
			w.garbage.tags[tag] = false
		} else if _, met := w.garbage.tags[tag]; !met {
			w.garbage.tags[tag] = true
		}
	}
	return nil
}
