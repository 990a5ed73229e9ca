package query

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/state"
)

// frame is a feature at a moment: what its answers for all entities have in common.
type frame struct {
	*features.Feature
	at       int64       // milliseconds
	parts    []int       // the frames of its parts
	windows  []int       // of its series if it is over a stream, indices in Reading.windows
	from, to int64       // what its window covers, in milliseconds; not of an exact one
	exceeds  bool        // whether the tiles have more than the window, see window.Exceeds
	compared *comparison // nil if its filter does not compare with the event in hand
}

// framed is the window of a series: a read without its entity.
type framed struct {
	state.Read
	before int // the index of the window before of the same series, -1 for none
}

// Frame prepares a feature to be asked about several entities at a moment, in milliseconds. It returns a number for
// WantFramed.
func (r *Reading) Frame(f *features.Feature, at int64) int { return r.frame(f, at, f.BeforeCurrent()) }

func (r *Reading) frame(f *features.Feature, at int64, stored bool) int {
	next := frame{Feature: f, at: at}
	if parts := f.Parts(); len(parts) > 0 {
		start := len(r.partFrames)
		r.partFrames = slices.Grow(r.partFrames, len(parts))[:start+len(parts)] // those of their own parts come behind
		for i, part := range parts {
			number := r.frame(part, at, stored)
			r.partFrames[start+i] = number
		}
		next.parts = r.partFrames[start : start+len(parts) : start+len(parts)]
	}
	if f.Compared != nil {
		next.compared = newComparison(f.Compared)
	}
	if len(f.Series) > 0 && len(next.parts) == 0 {
		next.windows = r.windowsOf(f, at, stored)
		if !f.Window.Exact {
			next.from, next.to = f.Window.Covers(f.Series[0], at, r.now)
			next.exceeds = f.Window.Exceeds(f.Series[0], at)
		}
	}
	r.frames = append(r.frames, next)
	return len(r.frames) - 1
}

// windowsOf returns the windows of a feature's series at a moment, and adds those that are new. Stored means that pending
// events do not count.
func (r *Reading) windowsOf(f *features.Feature, at int64, stored bool) []int {
	_, total := f.Function.(aggregate.Totalled)
	start := len(r.indices)
	for _, s := range f.Series {
		first, last := f.Window.Tiles(s, at-f.Window.Delay.Milliseconds())
		r.indices = append(r.indices, r.window(state.Read{Series: s, First: first, Last: last, Total: total, Stored: stored}))
	}
	return r.indices[start:len(r.indices):len(r.indices)]
}

func (r *Reading) window(read state.Read) int {
	newest, ok := r.newest[read.Series]
	if !ok {
		newest = -1
	}
	for i := newest; i >= 0; i = r.windows[i].before {
		if r.windows[i].Read == read {
			return i
		}
	}
	i := len(r.windows)
	r.windows = append(r.windows, framed{read, newest})
	r.newest[read.Series] = i
	return i
}

// entityReads are the reads of an entity.
type entityReads struct {
	entity    string
	positions []int // by window: of its read in Reading.reads, plus 1; 0 if it is not read
}

// addReads adds the reads of a feature over a stream for an entity, unless they are there.
func (r *Reading) addReads(fr *frame, entity string) {
	of := r.readsOf(entity)
	for _, w := range fr.windows {
		if n := w + 1 - len(of.positions); n > 0 {
			of.positions = slices.Grow(of.positions, n)[:w+1]
		}
		position := &of.positions[w]
		if *position == 0 {
			read := r.windows[w].Read
			read.Entity = entity
			r.reads = append(r.reads, read)
			*position = len(r.reads)
		}
		r.needs = append(r.needs, *position-1)
	}
}

func (r *Reading) readsOf(entity string) *entityReads {
	// Several features are asked about an entity, mostly one after another.
	if r.recent < len(r.known) && r.known[r.recent].entity == entity {
		return &r.known[r.recent]
	}
	i, ok := r.entities[entity]
	if !ok {
		i = len(r.known)
		r.known = slices.Grow(r.known, 1)[:i+1] // with room for positions of earlier questions
		r.known[i].entity = entity
		r.entities[entity] = i
	}
	r.recent = i
	return &r.known[i]
}
