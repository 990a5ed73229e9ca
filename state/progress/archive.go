package progress

import (
	"github.com/weir-stream/weir/state"
)

// archiveKey names an archive of a cut, by their IDs.
type archiveKey struct{ cut, archive string }

// archive is what a shard knows of an archive.
type archive struct {
	rows  int64
	since int64 // the event time, in ms, from which it has all events
}

// rowsKey names the progress of a fill in the rows of an archive, by their IDs.
type rowsKey struct{ fill, archive string }

// BeginArchives records which archives a fill over a cut needs, all of the cut, and returns how far it has applied each. fills are
// all of the namespace. The fill takes over the position of a fill that has all of its columns. That one then no longer moves:
// its batches under way find another position, and change nothing. If any other fill of the same series has begun with an
// archive, it is unknown which rows the columns have, and the position is a moved one. So a column never has two fills that
// continue. The error is a state.ErrLostArchive if the shard knows more archives of the cut.
func (r *Record) BeginArchives(f *state.Fill, fills map[string]*state.Fill, archives []*state.Archive) ([]state.Position, error) {
	given := map[string]bool{}
	for _, a := range archives {
		given[a.ID] = true
	}
	cut := f.Cut.ID()
	for k := range r.archives {
		if k.cut == cut && !given[k.archive] {
			return nil, state.ErrLostArchive
		}
	}
	positions := make([]state.Position, len(archives))
	for i, a := range archives {
		r.archives[archiveKey{cut, a.ID}] = archive{a.Rows(), a.Since}
		k := rowsKey{f.ID, a.ID}
		if _, begun := r.rows[k]; !begun {
			r.rows[k] = r.takeOver(f, fills, a.ID)
		}
		positions[i] = r.rows[k]
	}
	return positions, nil
}

// takeOver returns the first position of a fill in an archive.
func (r *Record) takeOver(f *state.Fill, fills map[string]*state.Fill, archive string) state.Position {
	for _, other := range f.Before(fills) {
		k := rowsKey{other.ID, archive}
		if at, begun := r.rows[k]; begun && at.Log != state.Moved {
			r.rows[k] = state.Position{Offset: at.Offset, Epoch: -1, Log: state.Moved}
			return at
		}
	}
	for k := range r.rows {
		if other := fills[k.fill]; k.archive == archive && (other == nil || f.Shares(other)) {
			return state.Position{Epoch: -1, Log: state.Moved}
		}
	}
	return state.Position{Epoch: -1}
}
