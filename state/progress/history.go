package progress

import (
	"github.com/weir-stream/weir/state"
)

// History unites the records of all shards; nil for a shard that has never answered. The plans and fills are those of Versions and
// Fills, as far as they are known.
func History(records []*Record, plans map[string]*state.Plan, fills map[string]*state.Fill) *state.History {
	h := &state.History{Plans: plans, Fills: fillEpochs(records, plans, fills)}
	last := map[Epoch]int64{}
	for _, r := range records {
		if r == nil {
			continue
		}
		for e, at := range r.ends {
			last[e] = max(last[e], at)
		}
		for p, held := range r.held {
			last[Epoch{p.Topic, held.Plan}] = state.MaxTime
		}
		if r.lag != nil && (h.Lag == nil || *r.lag < *h.Lag) {
			h.Lag = r.lag
		}
		h.Newest = max(h.Newest, r.Newest())
		h.Ahead = h.Ahead.And(r.ahead)
	}
	for e, at := range last {
		h.PlanEpochs = append(h.PlanEpochs, state.PlanEpoch{Topic: e.Topic, Version: e.Version, Last: at})
	}
	return h
}

// fillEpochs returns the progress of fills over all shards.
func fillEpochs(records []*Record, plans map[string]*state.Plan, fills map[string]*state.Fill) (epochs []state.FillEpoch) {
	for _, f := range fills {
		progress := append([]*state.Fill{f}, f.Before(fills)...)
		whole := wholeIn(f, plans)
		for topic := range f.Columns {
			e := state.FillEpoch{Fill: f, Topic: topic, Whole: true, Since: state.MinTime}
			for _, r := range records {
				if r == nil {
					e.Whole = false
					continue
				}
				r.add(&e, progress, whole)
			}
			if f.Cut != nil {
				addArchives(&e, progress, records)
			}
			epochs = append(epochs, e)
		}
	}
	return epochs
}

// wholeIn returns a function that reports whether the plan of a version is known to keep all of a fill.
func wholeIn(f *state.Fill, plans map[string]*state.Plan) func(version string) bool {
	known := map[string]bool{}
	return func(version string) bool {
		whole, found := known[version]
		if !found {
			whole = plans[version] != nil && f.In(plans[version]) == state.KeptAll
			known[version] = whole
		}
		return whole
	}
}

// add adds the progress of the shard to that of a fill, the first of some fills; see FirstFilling. whole reports
// whether the plan of a version keeps all of the fill.
func (r *Record) add(e *state.FillEpoch, fills []*state.Fill, whole func(version string) bool) {
	for p, h := range r.held {
		if p.Topic != e.Topic {
			continue
		}
		f := r.FirstFilling(fills, p)
		filled, all := f.Share()
		e.Whole, e.Since = e.Whole && f.Done(), max(e.Since, f.Since)
		e.Broken = e.Broken || f.Broken || !f.Known && whole(h.Plan)
		e.Filled, e.All, e.Opened, e.Ahead = e.Filled+filled, e.All+all, max(e.Opened, f.Opened), e.Ahead.And(f.Ahead)
	}
}

// addArchives adds the progress of a fill over a cut, the first of some fills, in the archives that any shard knows.
func addArchives(e *state.FillEpoch, fills []*state.Fill, records []*Record) {
	cut, known := e.Fill.Cut.ID(), map[string]archive{}
	for _, r := range records {
		if r == nil {
			continue
		}
		for k, a := range r.archives {
			if k.cut == cut {
				known[k.archive] = a
			}
		}
	}
	e.Archived, e.ArchivedSince = len(known) > 0, state.MaxTime
	for id, a := range known {
		e.ArchivedSince = min(e.ArchivedSince, a.since)
		for _, r := range records {
			at := r.rowsOf(fills, id)
			e.Broken = e.Broken || at.Log == state.Moved
			e.Archived = e.Archived && r != nil && at.Offset >= a.rows && !e.Broken
			e.AddRows(at.Offset, a.rows)
		}
	}
}

// rowsOf returns the position in an archive of the first fill that has one which is not moved, or else a moved one. A record that is
// nil has none.
func (r *Record) rowsOf(fills []*state.Fill, archive string) state.Position {
	at := state.NoPosition
	if r == nil {
		return at
	}
	for i, f := range fills {
		found, begun := r.rows[rowsKey{f.ID, archive}]
		if begun && (i == 0 || found.Log != state.Moved) {
			return found
		}
		if begun {
			at = found
		}
	}
	return at
}
