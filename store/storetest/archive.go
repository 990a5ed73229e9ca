package storetest

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// before is the cut of these tests: the log has the events of day 100 on.
var before = &state.Cut{Topic: transactions.Topic, Until: 100 * day}

// overCut returns a generation of a series over the cut.
func overCut(base string) *state.Series {
	s := *added
	s.ID, s.Cut = state.GenerationID(base, state.Generation{Cut: before.ID()}), before
	return &s
}

// archived and archivedToo are generations over the cut of these series.
var (
	archivedBases         = map[*state.Series]string{archived: "arch1", archivedToo: "arch2"}
	archived, archivedToo = overCut("arch1"), overCut("arch2")
)

// file is a file with one row for each device, ten times.
var file = state.ArchivedFile{Name: "a.csv", Stream: "transaction", Hash: "a", Rows: 10 * devices}

// register adds a file to the archives of the cut, and returns them.
func (f *filling) register(since int64, files ...state.ArchivedFile) []*state.Archive {
	f.Helper()
	if err := f.store.AddArchive(f.Context(), &state.Archive{Cut: *before, Since: since, Files: files}); err != nil {
		f.Fatal(err)
	}
	known, err := f.store.Archives(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	return state.ArchivesOf(*before, known)
}

// rows returns the positions of a fill in archives, by shard.
func (f *filling) rows(fill *state.Fill, archives ...*state.Archive) [][]state.Position {
	f.Helper()
	positions, err := f.store.BeginArchives(f.Context(), fill, archives)
	if err != nil {
		f.Fatal(err)
	}
	return positions
}

// applyRows applies rows of an archive, and reports whether they were refused.
func (f *filling) applyRows(fill *state.Fill, a *state.Archive, progress []state.Position, from, to int64, series ...*state.Series) (behind bool) {
	f.Helper()
	b := f.batch(fill.Archive(a), progress, from, to, series...)
	return f.applyBatch(b)
}

// epoch returns the fill's progress in the history.
func (f *filling) epoch(fill *state.Fill) *state.FillEpoch {
	f.Helper()
	h, err := f.store.History(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for i := range h.Fills {
		if h.Fills[i].Fill.ID == fill.ID {
			return &h.Fills[i]
		}
	}
	f.Fatalf("the history has no fill %s", fill.ID)
	return nil
}

// expectSinceOver checks since when a series over the cut is complete.
func (f *filling) expectSinceOver(s *state.Series, want int64) {
	f.Helper()
	history, err := f.store.History(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	got := history.CompleteSince([]state.Retained{{Key: s.ID + ".x", Topic: transactions.Topic, Retention: state.Retention{Keep: s.Keep}, Tile: s.Tile, Cut: before}})
	if got != want {
		f.Errorf("%s is complete since %d, want %d", s.ID, got, want)
	}
}

// testArchive checks that rows of files are applied exactly once to series over a cut.
func testArchive(t *testing.T, open func() store.Store) {
	begin := func(t *testing.T, series ...*state.Series) (*filling, *state.Fill) {
		f := newFilling(t, open())
		f.take("v2", append([]*state.Series{events}, series...)...)
		fill := f.fill(series...)
		f.start(fill, 30, before.Until)
		return f, fill
	}
	t.Run("once", func(t *testing.T) {
		f, fill := begin(t, archived)
		f.expectSinceOver(archived, 100*day)
		archives := f.register(50*day, file)
		if again := f.register(50*day, file); len(again) != 1 || !cmp.Equal(again, archives) {
			t.Errorf("registering the files again gave %+v, want the same archives", again)
		}
		known := f.rows(fill, archives...)[0]
		f.applyRows(fill, archives[0], f.rows(fill, archives...)[0], 0, 6*devices, archived)
		if e := f.epoch(fill); e.Archived || e.FilledRows == 0 || e.FilledRows >= e.AllRows || e.All-e.AllRows != e.Filled-e.FilledRows {
			t.Errorf("want a fill with some of its rows, got %+v", e)
		}
		f.expectSinceOver(archived, 100*day)
		f.applyRows(fill, archives[0], known, 0, 10*devices, archived) // from the beginning again
		f.expectCount(archived, 10*devices)
		f.expectSinceOver(archived, 50*day)
		f.applyRows(fill, archives[0], f.rows(fill, archives...)[0], 0, 10*devices, archived)
		f.expectCount(archived, 10*devices)
		f.applyLive(40)
		f.expectCount(archived, 10*devices+10)
	})
	t.Run("more files", func(t *testing.T) {
		f, fill := begin(t, archived)
		archives := f.register(50*day, file)
		f.applyRows(fill, archives[0], f.rows(fill, archives...)[0], 0, 10*devices, archived)
		f.expectSinceOver(archived, 50*day)
		archives = f.register(40*day, file, state.ArchivedFile{Name: "b.csv", Stream: "transaction", Hash: "b", Rows: devices})
		if len(archives) != 2 || len(archives[1].Files) != 1 {
			t.Fatalf("want a second archive with one file, got %+v", archives)
		}
		positions := f.rows(fill, archives...)
		f.expectSinceOver(archived, 100*day)
		f.applyRows(fill, archives[1], positions[1], 0, devices, archived)
		f.expectCount(archived, 11*devices)
		f.expectSinceOver(archived, 40*day)
		if err := f.store.AddArchive(t.Context(), &state.Archive{Cut: *before, Since: 30 * day, Stated: true}); err != nil {
			t.Fatal(err)
		}
		if archives = f.register(20 * day); len(archives) != 3 || !archives[2].Stated {
			t.Fatalf("with a stated beginning the archives are %+v, want a third, stated one", archives)
		}
		f.rows(fill, archives...)
		f.expectSinceOver(archived, 30*day)
	})
	t.Run("a shard that goes back", func(t *testing.T) {
		f, fill := begin(t, archived)
		archives := f.register(50*day, file)
		f.applyRows(fill, archives[0], f.rows(fill, archives...)[0], 0, 6*devices, archived)
		believed := f.rows(fill, archives...)[0]
		believed[0].Offset = 8 * devices
		if !f.applyRows(fill, archives[0], believed, 6*devices, 10*devices, archived) {
			t.Error("a shard applied a batch although it lacks earlier rows")
		}
		found := f.rows(fill, archives...)[0]
		if state.Lowest(found) != 6*devices || found[0].Offset != 6*devices {
			t.Errorf("unexpected positions %v", found)
		}
		if e := f.epoch(fill); e.Archived {
			t.Errorf("a fill that lacks rows is complete: %+v", e)
		}
		f.applyRows(fill, archives[0], found, 6*devices, 10*devices, archived)
		f.expectCount(archived, 10*devices)
		f.expectSinceOver(archived, 50*day)
	})
	t.Run("a plan that has a part of it", func(t *testing.T) {
		f, fill := begin(t, archived, archivedToo)
		archives := f.register(50*day, file)
		known := f.rows(fill, archives...)[0]
		f.applyRows(fill, archives[0], known, 0, 4*devices, archived, archivedToo)
		under := f.rows(fill, archives...)[0]
		f.take("v3", events, archived)
		part := f.partOf(fill)
		progress := f.rows(part, archives...)[0]
		if at := state.Lowest(progress); at != 4*devices {
			t.Fatalf("the part continues at row %d, want the fifth of each device", at)
		}
		if !f.applyRows(fill, archives[0], under, 4*devices, 10*devices, archived, archivedToo) {
			t.Error("a batch from before the new part was applied")
		}
		for _, at := range f.rows(fill, archives...)[0] {
			if at.Log != state.Moved {
				t.Errorf("the fill continues at %s, want it to have moved", at)
			}
		}
		f.applyRows(part, archives[0], progress, 4*devices, 10*devices, archived)
		f.expectCount(archived, 10*devices)
		f.expectSinceOver(archived, 50*day)
		if e := f.epoch(fill); !e.Broken {
			t.Errorf("want a broken fill, got %+v", e)
		}
	})
	t.Run("a part that began before what it is a part of", func(t *testing.T) {
		f, fill := begin(t, archived, archivedToo)
		archives := f.register(50*day, file)
		f.take("v3", events, archived)
		part := f.partOf(fill)
		f.applyRows(part, archives[0], f.rows(part, archives...)[0], 0, 4*devices, archived)
		for _, at := range f.rows(fill, archives...)[0] {
			if at.Log != state.Moved {
				t.Errorf("the fill continues at %s although its part has rows, want it to have moved", at)
			}
		}
		f.applyRows(part, archives[0], f.rows(part, archives...)[0], 4*devices, 10*devices, archived)
		f.expectCount(archived, 10*devices)
		f.expectSinceOver(archived, 50*day)
	})
	t.Run("files that are no longer registered", func(t *testing.T) {
		f, fill := begin(t, archived)
		f.rows(fill, f.register(50*day, file)...)
		other := state.NewArchive(state.Archive{Cut: *before, Files: []state.ArchivedFile{{Hash: "b"}}}, nil)
		if _, err := f.store.BeginArchives(t.Context(), fill, []*state.Archive{other}); !errors.Is(err, state.ErrLostArchive) {
			t.Errorf("an archive with other files: got error %v, want %v", err, state.ErrLostArchive)
		}
	})
}
