// Package query answers questions about features: it finds which state to read, each part once, and computes the
// answers and what they cover.
package query

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
)

// Reader reads state.
type Reader interface {
	// Read answers all reads in one round trip; the window states are in the order of the reads.
	Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error)
}

// Reading reads the state for a number of answers, equal reads once, in one round trip, or in two if some of the
// features are multi-hop:
//
//	r.Reset(now)
//	r.Want(feature, entity, at) // for each answer
//	err := r.Read(ctx, reader)
//	r.Next(&answer) // for each answer, in the same order
//
// It reuses its memory. Its zero value is ready for Reset.
type Reading struct {
	now       int64           // milliseconds
	present   int64           // milliseconds, see SetPresent
	remaining state.Remaining // see SetRemaining
	inHand    *record.Event   // see SetInHand
	tables    Tables          // see SetTables

	frames  []frame
	windows []framed              // of the frames, each once
	newest  map[*state.Series]int // the window added last of a series
	indices []int                 // memory of the frames

	requests []int // the frames of the wanted answers
	reads    []state.Read
	known    []entityReads       // the reads by entity
	entities map[string]int      // their indices in known
	recent   int                 // the index asked for last
	states   []state.WindowState // by read
	// needs are indices in reads: first what the wanted features need in the first round trip, in
	// their order, then what the hops need in the second.
	needs     []int
	multiHops []multiHop // of the wanted multi-hop features, in their order

	lookups []lookup         // of the fields of tables that the wanted features need, in their order
	rows    map[rowOf]lookup // what was looked up, so that all answers about a row are of one version of it

	// logs are the decoded logs of the window states, as far as answers used them; samples are the
	// events of one feature.
	logs    []*eventLog
	chosen  []*eventLog // of one feature
	samples []aggregate.Sample

	partFrames  []int         // those of all frames
	derivations []*derivation // memory for derived features, the first for those that are asked for, the next for their parts
	depth       int           // of those that are being computed

	// The position of Next.
	next, need, multiHop, lookup int
	gathered                     []state.WindowState // of one feature
}

// Reset starts over. The present moment is in milliseconds.
func (r *Reading) Reset(now int64) {
	if r.entities == nil {
		r.entities, r.newest, r.rows = map[string]int{}, map[*state.Series]int{}, map[rowOf]lookup{}
	}
	clear(r.frames)
	clear(r.windows)
	clear(r.newest)
	clear(r.reads)
	clear(r.entities)
	for i := range r.known {
		clear(r.known[i].positions)
		r.known[i] = entityReads{positions: r.known[i].positions[:0]}
	}
	clear(r.multiHops)
	clear(r.lookups)
	clear(r.rows)
	clear(r.gathered[:cap(r.gathered)])
	r.frames, r.windows, r.indices = r.frames[:0], r.windows[:0], r.indices[:0]
	r.partFrames, r.depth = r.partFrames[:0], 0
	r.requests, r.reads, r.known, r.states = r.requests[:0], r.reads[:0], r.known[:0], nil
	r.needs, r.multiHops, r.lookups = r.needs[:0], r.multiHops[:0], r.lookups[:0]
	r.logs, r.chosen, r.samples = nil, nil, nil // these alias what was read
	r.now, r.present, r.next, r.need, r.multiHop, r.lookup, r.recent = now, now, 0, 0, 0, 0, 0
	r.remaining, r.inHand = state.Remaining{}, nil
}

// SetRemaining sets since when all state remains, for the following answers; see state.History.Remaining. Without a call, all does.
func (r *Reading) SetRemaining(all state.Remaining) { r.remaining = all }

// SetPresent sets the first moment, in milliseconds, that counts as the present; without a call it is that of Reset.
// Answers as of an earlier moment say whether they may count events after it, see Answer.LaterEvents.
func (r *Reading) SetPresent(since int64) { r.present = since }

// SetInHand sets the event being scored for the following answers; nil, as without a call, means that there is none. Features
// that need one of another stream have none.
func (r *Reading) SetInHand(e *record.Event) { r.inHand = e }

// Want adds an answer: that of the feature for the entity with that text, at a moment in
// milliseconds.
func (r *Reading) Want(f *features.Feature, entity string, at int64) {
	r.WantFramed(r.Frame(f, at), entity)
}

// WantFramed adds an answer like Want: that of a frame, see Frame, for the entity with that text.
func (r *Reading) WantFramed(frame int, entity string) {
	r.requests = append(r.requests, frame)
	r.want(frame, entity)
}

func (r *Reading) want(frame int, entity string) {
	fr := &r.frames[frame]
	switch basis := fr.Basis.(type) {
	case *features.Derived:
		for i, part := range fr.parts {
			r.want(part, basis.PartEntity(fr.Feature, i, entity))
		}
	case *features.MultiHop:
		h := multiHop{MultiHop: basis, list: fr.parts[0], each: fr.parts[1], set: len(r.needs)}
		r.multiHops = append(r.multiHops, h)
		r.addReads(&r.frames[h.list], entity)
	case *features.OfTable:
		if fr.InHand == nil { // else the event has the key
			r.lookups = append(r.lookups, r.find(basis.Table, entity, fr.at))
		}
	default:
		r.addReads(fr, entity)
	}
}

// Reads returns the reads of the first round trip and, after ReadLists, also of the second, equal reads once. They are
// valid until Reset.
func (r *Reading) Reads() []state.Read { return r.reads }

// WindowStates returns the results of Reads, in the same order. They are valid until Reset.
func (r *Reading) WindowStates() []state.WindowState { return r.states }

// Read reads everything that is needed. The error is the reader's.
func (r *Reading) Read(ctx context.Context, from Reader) error {
	if err := r.ReadLists(ctx, from); err != nil {
		return err
	}
	return r.round(ctx, from)
}

// ReadLists makes the first of Read's round trips and finds the members that multi-hop features go
// through, for callers that need only Reads.
func (r *Reading) ReadLists(ctx context.Context, from Reader) error {
	if err := r.round(ctx, from); err != nil {
		return err
	}
	for i := range r.multiHops {
		r.firstHop(&r.multiHops[i])
	}
	return nil
}

// round reads in one round trip what has not been read yet.
func (r *Reading) round(ctx context.Context, from Reader) error {
	reads := r.reads[len(r.states):]
	if len(reads) == 0 {
		return nil
	}
	read, err := from.Read(ctx, reads)
	if err != nil {
		return err
	}
	if len(read) != len(reads) {
		return fmt.Errorf("the store answered %d of %d reads", len(read), len(reads))
	}
	if r.states == nil {
		r.states = read
	} else {
		r.states = slices.Concat(r.states, read)
	}
	return nil
}

// Lose discards the results for which why returns an error.
func (r *Reading) Lose(why func(*state.Read) error) {
	for i := range r.states {
		if err := why(&r.reads[i]); err != nil && r.states[i].Err == nil {
			r.states[i] = state.WindowState{Err: err}
		}
	}
}

// err returns why some of the needs are unknown, nil if all were read.
func (r *Reading) err(from, to int) error {
	for _, position := range r.needs[from:to] {
		if err := r.states[position].Err; err != nil {
			return err
		}
	}
	return nil
}

// Next fills in the next wanted answer, for a feature whose state lacks nothing but the entity's losses.
func (r *Reading) Next(a *Answer) { r.NextSince(a, &everything) }

// NextSince fills in the next wanted answer, of a feature with the given completeness.
func (r *Reading) NextSince(a *Answer, c *Completeness) {
	frame := r.requests[r.next]
	r.next++
	r.answer(a, &r.frames[frame], c)
}

func (r *Reading) answer(a *Answer, fr *frame, c *Completeness) {
	switch basis := fr.Basis.(type) {
	case *features.Derived:
		r.derive(a, fr, basis, c)
	case *features.MultiHop:
		r.multiHop++
		r.secondHop(a, &r.multiHops[r.multiHop-1], c)
	case *features.OfTable:
		if fr.InHand != nil {
			r.ofEvent(a, fr, basis)
			return
		}
		r.lookup++
		r.ofTable(a, fr, basis, r.lookups[r.lookup-1])
	default:
		r.need += len(fr.Series)
		if r.overStream(a, fr, r.need-len(fr.Series), r.need) {
			a.complete(fr.Feature, c)
			a.late()
		}
	}
}

// overStream answers a feature over a stream from what was read for some of the needs, and reports whether that could
// be read.
func (r *Reading) overStream(a *Answer, f *frame, from, to int) (read bool) {
	if err := r.err(from, to); err != nil {
		unread(a, f.Feature, err, f.at, r.now)
		return false
	}
	if f.compared != nil && r.lacksEvent(a, f) {
		return false
	}
	r.merge(a, f, from, to)
	for i, position := range r.needs[from:to] {
		since := state.MinTime
		if until := r.states[position].LostUntil; until != nil {
			since = *until + 1
		}
		a.uneven = a.uneven || i > 0 && since != a.since && f.IsQuotient()
		a.since = max(a.since, since)
	}
	lost(a, f.Feature, r.remaining)
	return !a.Status.Unread()
}

// lost makes an answer incomplete if some of its events were pruned, or may have expired before that, or may have been swept from a
// key that lives forever, which is no sooner. It does so only if the answer reaches back that far, because the moment moves with the
// clock.
func lost(a *Answer, f *features.Feature, r state.Remaining) {
	if r == (state.Remaining{}) {
		return
	}
	for _, s := range f.Series {
		if since := r.Since(s); since > a.coveredSince {
			a.since, a.slides = max(a.since, since), true
		}
	}
}

// merge answers a feature over a stream from window states that are all readable.
func (r *Reading) merge(a *Answer, f *frame, from, to int) {
	if !f.Window.Exact {
		fromTiles(a, f, r.gather(from, to))
		a.LaterEvents = f.at < r.present && r.reachBeyond(f.at, from, to)
		return
	}
	r.chosen = r.chosen[:0]
	for _, position := range r.needs[from:to] {
		log, err := r.log(position)
		if err != nil {
			unread(a, f.Feature, r.damage(position, err), f.at, r.now)
			return
		}
		r.chosen = append(r.chosen, log)
	}
	if from == to {
		r.chosen = append(r.chosen, noLog)
	}
	if err := fromLogs(a, f, r.chosen, f.at, &r.samples); err != nil {
		unread(a, f.Feature, r.damage(r.needs[from], err), f.at, r.now)
	}
}

// reachBeyond reports whether a tile that ends after a moment has content, for some of the needs.
func (r *Reading) reachBeyond(at int64, from, to int) bool {
	return slices.ContainsFunc(r.needs[from:to], func(position int) bool {
		read, held := &r.reads[position], &r.states[position]
		return held.After > 0 || read.Series.EndOf(read.Last) > at && held.Reaches(read.Last)
	})
}

// damage describes what is wrong with a log that was read.
func (r *Reading) damage(position int, err error) error {
	s := r.reads[position].Series
	return fmt.Errorf("group %s, series %s: %w", s.Group, s.ID, err)
}

// log returns the decoded log of a window state.
func (r *Reading) log(position int) (log *eventLog, err error) {
	if n := len(r.states) - len(r.logs); n > 0 {
		r.logs = append(r.logs, make([]*eventLog, n)...)
	}
	if r.logs[position] == nil {
		r.logs[position], err = decodeLog(&r.states[position])
	}
	return r.logs[position], err
}

// gather returns the window states for some of the needs, valid until its next call.
func (r *Reading) gather(from, to int) []state.WindowState {
	if to == from+1 { // the common case, without a copy
		position := r.needs[from]
		return r.states[position : position+1]
	}
	r.gathered = r.gathered[:0]
	for _, position := range r.needs[from:to] {
		r.gathered = append(r.gathered, r.states[position])
	}
	return r.gathered
}
