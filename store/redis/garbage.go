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

// garbageListAge is how old a list without any garbage may be before it is read again.
const garbageListAge = 10 * time.Minute

// garbageSeries lists series by their tags, and which of them are garbage.
type garbageSeries struct {
	tags  map[uint32]bool
	read  time.Time
	fresh bool  // it was read after the compaction candidates
	err   error // of reading it
}

// isGarbage reports whether an unknown series in the compaction candidates is garbage. A series may come back into use
// while the list is read. So if the list names it, the list is read once more, after the candidates: what was appended to
// the series since it came back is not in them.
func (w *writer) isGarbage(ctx context.Context, tag uint32) bool {
	g := &w.garbage
	if !g.fresh && g.err == nil && (g.tags[tag] || time.Since(g.read) > garbageListAge) {
		err := w.readGarbage(ctx)
		g.fresh, g.err = err == nil, err
	}
	return g.err == nil && g.tags[tag]
}

// readGarbage lists all series that were ever used, and which of them are garbage.
func (w *writer) readGarbage(ctx context.Context) error {
	tags, err := w.store.Garbage(ctx)
	if err != nil && !errors.Is(err, state.ErrUnavailable) {
		return err
	}
	// While a master does not answer, no series is known to be garbage.
	w.garbage = garbageSeries{tags: tags, read: time.Now()}
	return nil
}

// others says whether sections of a child, which leave their parent, may belong to another plan, which may keep them for
// longer: "" if not, "forever" if that may be forever, else "longer". Its time to live is then that of the parent's key,
// which the other plan has set. If this plan keeps the parent forever, a parent's key without a time to live says nothing
// of the other.
func (parent *group) others(child *group, sections []byte) (others string) {
	_ = packed.Sections(sections, func(tag uint32, _ []byte) error { // they were just packed
		switch {
		case child.series[tag] != nil || tag == packed.LossTag:
		case parent.keep > 0:
			others = "forever"
		default:
			others = "longer"
		}
		return nil
	})
	return others
}
