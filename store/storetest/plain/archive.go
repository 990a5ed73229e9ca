package plain

import (
	"context"
	"maps"
	"slices"

	"github.com/weir-stream/weir/state"
)

// Archives returns the archives of the namespace.
func (s *Store) Archives(context.Context) ([]*state.Archive, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.archives), nil
}

// AddArchive adds the files of a draft that the namespace does not know to those before its cut.
func (s *Store) AddArchive(_ context.Context, draft *state.Archive) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := state.NewArchive(*draft, s.archives); a != nil {
		s.archives = append(s.archives, a)
	}
	return nil
}

// BeginArchives records in all shards which archives a fill over a cut needs.
func (s *Store) BeginArchives(_ context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.hang(); err != nil {
		return nil, err
	}
	positions := make([][]state.Position, len(archives))
	for _, sh := range s.shards {
		for id := range sh.archives[*f.Cut] {
			if !slices.ContainsFunc(archives, func(a *state.Archive) bool { return a.ID == id }) {
				return nil, state.ErrLostArchive
			}
		}
		for i, a := range archives {
			if sh.archives[a.Cut] == nil {
				sh.archives[a.Cut] = map[string]*state.Archive{}
			}
			sh.archives[a.Cut][a.ID] = a
			positions[i] = append(positions[i], *s.rowsOf(sh, f, a))
		}
	}
	return positions, nil
}

// rowsOf returns the position of a fill in an archive. It takes over the position of a fill with all of its columns,
// which then no longer moves. If any other fill of the same series has begun with the archive, it is unknown which rows
// the columns have.
func (s *Store) rowsOf(sh *shard, f *state.Fill, a *state.Archive) *state.Position {
	name := f.Archive(a)
	if sh.rows[name] != nil {
		return sh.rows[name]
	}
	at := &state.Position{Epoch: -1}
	for _, other := range s.fills {
		if other.ID != f.ID && other.Shares(f) && sh.rows[other.Archive(a)] != nil {
			at.Log = state.Moved
		}
	}
	for _, other := range f.Before(s.fills) {
		if found := sh.rows[other.Archive(a)]; found != nil && found.Log != state.Moved {
			*at = *found
			found.Log = state.Moved
			break
		}
	}
	sh.rows[name] = at
	return at
}

// addArchives adds the progress of a fill over a cut in the archives that any shard knows.
func (s *Store) addArchives(e *state.FillEpoch) {
	needed := map[string]*state.Archive{}
	for _, sh := range s.shards {
		maps.Copy(needed, sh.archives[*e.Fill.Cut])
	}
	fills := append([]*state.Fill{e.Fill}, e.Fill.Before(s.fills)...)
	e.Archived, e.ArchivedSince = len(needed) > 0, state.MaxTime
	for _, a := range needed {
		e.ArchivedSince = min(e.ArchivedSince, a.Since)
		for _, sh := range s.shards {
			at := sh.rowsOfAny(fills, a)
			e.Broken = e.Broken || at.Log == state.Moved
			e.Archived = e.Archived && at.Offset >= a.Rows() && !e.Broken
			e.AddRows(at.Offset, a.Rows())
		}
	}
}

// rowsOfAny returns the position in an archive of the first fill that has one which is not moved, or else a moved one.
func (sh *shard) rowsOfAny(fills []*state.Fill, a *state.Archive) state.Position {
	at := state.NoPosition
	for i, f := range fills {
		found := sh.rows[f.Archive(a)]
		if found != nil && (i == 0 || found.Log != state.Moved) {
			return *found
		}
		if found != nil {
			at = *found
		}
	}
	return at
}
