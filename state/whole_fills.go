package state

import (
	"slices"
	"sync"
	"time"
)

// WholeFills remembers since when fills are complete, for readers that read state before history: the history may call
// a fill complete that was not complete when the state was read. Its zero value is ready. It is safe for concurrent
// use.
type WholeFills struct {
	mu    sync.Mutex
	since map[wholeFill]time.Time
}

// wholeFill names a fill that is whole, or whose archives are all applied.
type wholeFill struct {
	id, topic string
	archived  bool
}

// whole returns the parts of a fill that are complete.
func (f *FillEpoch) whole() (names []wholeFill) {
	if f.Whole {
		names = append(names, wholeFill{f.Fill.ID, f.Topic, false})
	}
	if f.Archived {
		names = append(names, wholeFill{f.Fill.ID, f.Topic, true})
	}
	return names
}

// Note records the complete fills of a history that was read at or after a moment.
func (w *WholeFills) Note(h *History, read time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	since := map[wholeFill]time.Time{}
	if h != nil {
		for i := range h.Fills {
			for _, name := range h.Fills[i].whole() {
				since[name] = read
				if earlier, known := w.since[name]; known {
					since[name] = earlier
				}
			}
		}
	}
	w.since = since
}

// At adjusts a history to state that was read at a moment: fills that were not known to be complete by then are not
// complete.
func (w *WholeFills) At(h *History, moment time.Time) *History {
	if h == nil || len(h.Fills) == 0 {
		return h
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var masked *History
	for i := range h.Fills {
		for _, name := range h.Fills[i].whole() {
			if since, known := w.since[name]; known && !since.After(moment) {
				continue
			}
			if masked == nil {
				over := *h
				over.Fills = slices.Clone(h.Fills)
				masked = &over
			}
			if name.archived {
				masked.Fills[i].Archived = false
			} else {
				masked.Fills[i].Whole = false
			}
		}
	}
	if masked != nil {
		return masked
	}
	return h
}
