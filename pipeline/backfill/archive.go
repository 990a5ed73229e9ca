package backfill

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// FromFiles fills the features of definitions from files of events of a topic before a cut. All fields are required,
// unless their comments say otherwise.
type FromFiles struct {
	Store       store.Store
	Definitions *features.Registry // as given, not bound to generations
	Cut         state.Cut
	// Since is the stated event time, in ms, from which the files have all events before the cut; MinTime states that
	// they have all events. If it is nil, the earlier statement holds, or else the time of the files' earliest event, of
	// the stream for which that is the latest.
	Since *int64
	Files []*File
	// Rate is the share of a core to use, above 0 and up to 1. Time spent waiting for the store
	// counts.
	Rate float64

	// Trouble, Waiting and Progress may be nil. They are called with errors of the store, which are retried; with the
	// features whose files no processor knows yet; and with the number of applied rows of a fill.
	Trouble  func(error)
	Waiting  func(features []string)
	Progress func(f *state.Fill, features []string, filled, all int64)

	writer store.Writer
	waited map[string]bool // fills, see grace
}

// Errors of FromFiles.
var (
	// ErrNothingReachesBack means that no feature needs events before the cut.
	ErrNothingReachesBack = errors.New("no feature reaches back before the cut, so its files are not needed")
	// errOtherCut means that files were registered with another cut meanwhile.
	errOtherCut = errors.New("files of the topic were registered with another cut meanwhile")
)

// missingFilesError names registered files that are not completely applied and are missing in the call.
type missingFilesError struct{ Names []string }

func (e *missingFilesError) Error() string {
	return fmt.Sprintf("these files were registered with the same cut, and are not applied completely: give them too: %s", strings.Join(e.Names, ", "))
}

// LaterSinceError is returned if the files of the cut were registered as reaching back further than is stated now.
type LaterSinceError struct{ Registered, Stated int64 } // event times in ms; MinTime for all events

func (e *LaterSinceError) Error() string {
	return "the files were registered as having all events since an earlier moment than is stated now"
}

// errAgain means that positions must be read again: the store went back in time, a master does not
// answer, or the fill was given up.
var errAgain = errors.New("positions must be read again")

// Register makes the files known to the namespace. Processors then also keep series over the cut.
func (f *FromFiles) Register(ctx context.Context) error {
	known, err := f.Store.Archives(ctx)
	if err != nil {
		return err
	}
	if err := checkNames(f.Files, state.ArchivesOf(f.Cut, known)); err != nil {
		return err
	}
	if since, _ := state.WholeSince(f.Cut, known); f.Since != nil && *f.Since > since {
		return &LaterSinceError{Registered: since, Stated: *f.Since}
	}
	return f.add(ctx)
}

func (f *FromFiles) add(ctx context.Context) error {
	draft := state.Archive{Cut: f.Cut, Since: f.begin()}
	for _, file := range f.Files {
		draft.Files = append(draft.Files, file.ArchivedFile)
	}
	if f.Since != nil {
		draft.Since, draft.Stated = *f.Since, true
	}
	return f.Store.AddArchive(ctx, &draft)
}

// begin returns the time of the first event in the files, in ms, or of the stream whose first event is the latest: what the
// files have of another stream says nothing about the events of this one. A stream without events begins at the cut.
func (f *FromFiles) begin() int64 {
	begins, latest := map[string]int64{}, state.MinTime
	for _, file := range f.Files {
		first, known := begins[file.Stream]
		if !known {
			first = f.Cut.Until
		}
		begins[file.Stream] = min(first, file.Earliest)
	}
	for _, first := range begins {
		latest = max(latest, first)
	}
	return latest
}

// Run fills from the registered files, until all are applied to all series that the definitions keep over the cut. It
// waits for a store that is unavailable, and for processors that do not know the files yet. It returns one of the
// errors above, state.ErrLostArchive, or an error about a file.
func (f *FromFiles) Run(ctx context.Context) error {
	f.writer, f.waited = f.Store.NewWriter(), map[string]bool{}
	for {
		done, err := f.round(ctx)
		about, is := errors.AsType[*storeError](err)
		switch {
		case done || ctx.Err() != nil:
			return ctx.Err()
		case is && !errors.Is(err, state.ErrLostArchive):
			f.trouble(about.err)
		case err != nil && !errors.Is(err, errAgain):
			return err
		}
		if !retry.Wait(ctx, lookInterval) {
			return ctx.Err()
		}
	}
}

// storeError is an error of the store.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }
func (e *storeError) Unwrap() error { return e.err }

func (f *FromFiles) trouble(err error) {
	if f.Trouble != nil {
		f.Trouble(err)
	}
}

// round applies the remaining rows to all present fills over the cut, and reports whether that was all.
func (f *FromFiles) round(ctx context.Context) (done bool, err error) {
	archives, err := f.archives(ctx)
	if err != nil {
		return false, err
	}
	b, err := Bind(ctx, f.Store, f.Definitions)
	if err != nil {
		return false, &storeError{err}
	}
	if _, reaches := b.Registry.Plan().Cuts[f.Cut.ID()]; !reaches {
		return false, ErrNothingReachesBack
	}
	missing := map[string]bool{}
	fills, pending, err := b.FillsOver(ctx, f.Cut)
	if err != nil {
		return false, &storeError{err}
	}
	if len(pending) > 0 && f.Waiting != nil {
		f.Waiting(pending)
	}
	done = len(pending) == 0
	for _, fill := range fills {
		applied, err := f.fill(ctx, b.Registry, fill, archives, missing)
		if err != nil {
			return false, err
		}
		done = done && applied
	}
	if len(missing) > 0 {
		e := &missingFilesError{}
		for name := range missing {
			e.Names = append(e.Names, name)
		}
		slices.Sort(e.Names)
		return false, e
	}
	return done, nil
}

// archives returns the archives of the cut. If the store has gone back to before the files were registered, it
// registers them again.
func (f *FromFiles) archives(ctx context.Context) ([]*state.Archive, error) {
	known, err := f.Store.Archives(ctx)
	if err != nil {
		return nil, &storeError{err}
	}
	archives := state.ArchivesOf(f.Cut, known)
	for _, file := range f.Files {
		if !hasFile(archives, file) {
			if err := f.add(ctx); err != nil {
				return nil, &storeError{err}
			}
			return nil, errAgain
		}
	}
	if current := state.CutOf(f.Cut.Topic, known); current == nil || *current != f.Cut {
		return nil, errOtherCut
	}
	return archives, nil
}

// grace is how long the shards know of an archive before its first row is applied: a server with an older history must
// not call a part of it complete.
const grace = store.MaxHistoryAge + 100*time.Millisecond

// fill applies the remaining rows of the archives to a fill, and reports whether that was all. It collects the names of
// files that it lacks.
func (f *FromFiles) fill(ctx context.Context, r *features.Registry, fill *state.Fill, archives []*state.Archive, missing map[string]bool) (bool, error) {
	positions, err := f.Store.BeginArchives(ctx, fill, archives)
	if err != nil {
		return false, &storeError{err}
	}
	newest, err := newestRecord(ctx, f.Store)
	if err != nil {
		return false, &storeError{err}
	}
	reach := r.FillReach(fill, f.Cut.Topic)
	reach.After = 0
	a := &applying{FromFiles: f, registry: r, fill: fill, features: r.FilledBy(fill), moment: state.MinTime, began: time.Now()}
	if !reach.Forever {
		a.moment = matters(reach, newest)
	}
	done := true
	for i, archive := range archives {
		a.all += archive.Rows()
		if name := fill.ID + archive.ID; state.Highest(positions[i]) == 0 && archive.Rows() > 0 && !f.waited[name] {
			f.waited[name] = true
			done = false
		}
	}
	if !done {
		if !retry.Wait(ctx, grace) {
			return false, ctx.Err()
		}
		return false, errAgain
	}
	for i, archive := range archives {
		applied, err := a.archive(ctx, archive, positions[i], missing)
		if err != nil {
			return false, err
		}
		done = done && applied
		a.before += archive.Rows()
	}
	return done, nil
}

// Bounds of a batch of rows.
const (
	maxRows     = 2000
	maxRowBytes = 4 << 20 // of the values of their fields
	valueBytes  = 8       // of one without a text
)

// applying applies archives to a fill.
type applying struct {
	*FromFiles
	registry *features.Registry
	fill     *state.Fill
	features []string // filled
	moment   int64    // events before it are not needed, in ms

	before, all int64 // rows of archives, before the current one and together

	batch    state.Batch
	whole    state.Batch // of a row of which only some events are wanted
	progress []state.Position
	of       state.Partition
	events   int
	bytes    int
	swept    time.Time // when every shard was last moved
	began    time.Time // when the batch began
}

// archive applies the remaining rows of an archive, and reports whether that was all.
func (a *applying) archive(ctx context.Context, archive *state.Archive, progress []state.Position, missing map[string]bool) (bool, error) {
	rows, from := archive.Rows(), state.Lowest(progress)
	if slices.ContainsFunc(progress, func(at state.Position) bool { return at.Log == state.Moved }) {
		return false, nil
	}
	if from >= rows {
		return true, nil
	}
	a.of, a.progress = a.fill.Archive(archive), progress
	a.begin(from)
	base, lacks := int64(0), false
	for i := range archive.Files {
		known := &archive.Files[i]
		end := base + known.Rows
		at := slices.IndexFunc(a.Files, func(given *File) bool { return given.Same(known) })
		switch {
		case end <= from:
		case at < 0:
			missing[known.Name] = true
			lacks = true
		case !lacks:
			if err := a.file(ctx, a.Files[at], base, max(0, from-base)); err != nil {
				return false, err
			}
		}
		base = end
	}
	return !lacks, a.apply(ctx, a.batch.Ranges[0].To, true)
}

// begin begins a batch at a row.
func (a *applying) begin(row int64) {
	a.batch.Reset()
	a.batch.Ranges = append(a.batch.Ranges, state.PartitionRange{Partition: a.of, To: row, Epoch: -1, Progress: a.progress})
	a.events, a.bytes, a.began = 0, 0, time.Now()
}

// file applies the rows of a file, except those that were already applied. base is the number of rows before the file.
func (a *applying) file(ctx context.Context, f *File, base, skip int64) error {
	r, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer r.close()
	mapper := a.registry.NewArchiveMapper(a.fill, f.input.Stream)
	earlier := record.NewEarlier([]*record.Stream{f.input.Stream}, f.input.Stream.Topic, state.NewSecret())
	for row := range f.Rows {
		if err := r.next(); err == io.EOF {
			return f.changed()
		} else if err != nil {
			return err
		}
		if row < skip && earlier == nil {
			continue
		}
		events, timestamp := firstEvents(r, mapper, earlier, row)
		if row < skip {
			continue
		}
		a.row(mapper, events, timestamp, base+row)
		if a.events >= maxRows || a.bytes >= maxRowBytes {
			if err := a.apply(ctx, base+row+1, time.Since(a.swept) > lookInterval); err != nil {
				return err
			}
		}
	}
	a.batch.Ranges[0].To = base + f.Rows
	return nil
}

// firstEvents returns the events of a row and the timestamp of its record; none if an earlier row of the file had them, or if they
// cannot be used, which has been reported.
func firstEvents(r *rows, mapper *features.Mapper, earlier *record.Earlier, row int64) ([]record.Event, int64) {
	events, timestamp, err := r.events()
	earlier.Pass(row, timestamp) // whatever is in it
	if err != nil || len(events) == 0 {
		return nil, 0
	}
	if earlier != nil {
		e := &events[0] // a stream whose records have several events knows none from earlier ones
		e.Now = timestamp
		if mapper.Check(events) != nil || earlier.Repeats(e, false) {
			return nil, 0
		}
	}
	return events, timestamp
}

// row adds a row to the batch, with the events that it has and that count.
func (a *applying) row(mapper *features.Mapper, events []record.Event, timestamp, offset int64) {
	a.events++
	for i := range events {
		for _, v := range events[i].Values {
			a.bytes += valueBytes + len(v.Str)
		}
	}
	unwanted := func(e record.Event) bool { return !a.Cut.FromFile(e.Time) || e.Time < a.moment }
	if slices.ContainsFunc(events, unwanted) {
		if len(events) > 1 { // a row cannot be used if any of its events cannot be
			a.whole.Reset()
			if _, err := mapper.MapEvents(events, offset, timestamp, 0, &a.whole); err != nil {
				return
			}
		}
		events = slices.DeleteFunc(events, unwanted)
	}
	_, _ = mapper.MapEvents(events, offset, timestamp, 0, &a.batch)
}

// apply writes the batch, which has all rows before `to`, and begins the next one.
func (a *applying) apply(ctx context.Context, to int64, everyShard bool) error {
	if everyShard {
		a.swept = time.Now()
	}
	r := &a.batch.Ranges[0]
	r.To, a.batch.EveryShard = to, everyShard
	prepared := time.Since(a.began)
	took, written := write(ctx, a.writer, &a.batch, a.trouble)
	if !written {
		return ctx.Err()
	}
	if r.Behind || slices.Contains(r.Lagging, true) {
		return errAgain
	}
	retry.Wait(ctx, time.Duration(float64(prepared+took)*(1-a.Rate)/a.Rate))
	a.begin(to)
	if a.Progress != nil {
		a.Progress(a.fill, a.features, a.before+to, a.all)
	}
	return nil
}
