package backfill

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// Input names a file of events of a stream.
type Input struct {
	Name   string
	Stream *record.Stream
	// RecordTime is the path of the field with the time of an event's record; empty if only envelopes have it. Lateness
	// is judged against it, or else against the event's own time.
	RecordTime string
	// Coordinates locate the record of each row, for a cut by offsets; nil for a cut by time.
	Coordinates *Coordinates
}

// File is an input with its content's statistics.
type File struct {
	state.ArchivedFile
	Events   int64 // of the stream
	Before   int64 // of these events, those before the cut
	Earliest int64 // event time of those before the cut, in ms; state.MaxTime without any
	Latest   int64 // likewise; -1 without any
	Spans    Spans // of rows, if there are coordinates
	Unusable int64 // events of the stream that cannot be used; Reason says why for the first one
	Reason   error

	input   Input
	version string // see source.Version
}

// ReadFile reads a file to its end and counts its events. They are mapped in the same way as when they are applied, and
// unusable ones are counted. An error states its place in the file. The cut is nil for a cut by offsets, which is at
// the end of the files.
func ReadFile(ctx context.Context, in Input, registry *features.Registry, cut *state.Cut) (*File, error) {
	in.Name = source.Clean(in.Name)
	f := &File{input: in, ArchivedFile: state.ArchivedFile{Name: in.Name, Stream: in.Stream.Name}, Earliest: state.MaxTime, Latest: -1, Spans: Spans{}}
	if err := f.hash(ctx); err != nil {
		return nil, err
	}
	r, err := f.open(ctx)
	if err != nil {
		return nil, err
	}
	defer r.close()
	mapper, batch := registry.NewJSONMapper(in.Stream), &state.Batch{}
	var first []byte
	for ; ; f.Rows++ {
		if f.Rows%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := r.next(); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if f.Rows == 0 {
			first = slices.Clone(r.line.Value)
		}
		if err := f.locate(r); err != nil {
			return nil, err
		}
		batch.Reset()
		if err := f.note(r, mapper, batch, cut); err != nil {
			f.Events++
			if f.Unusable++; f.Unusable == 1 {
				f.Reason = err
			}
		}
	}
	if f.Events == 0 && f.Rows > 0 {
		return nil, source.NoneOf(f.Name, f.Rows, in.Stream, first)
	}
	return f, nil
}

// note counts the events of a row.
func (f *File) note(r *rows, mapper *features.Mapper, batch *state.Batch, cut *state.Cut) error {
	events, timestamp, err := r.events()
	if err != nil || len(events) == 0 {
		return err
	}
	if _, err := mapper.MapEvents(events, 0, timestamp, 0, batch); err != nil {
		return r.at(err)
	}
	for i := range events {
		f.Events++
		if at := events[i].Time; cut == nil || cut.FromFile(at) {
			f.Before++
			f.Earliest, f.Latest = min(f.Earliest, at), max(f.Latest, at)
		}
	}
	return nil
}

// locate records which record a row was, for events of any stream.
func (f *File) locate(r *rows) error {
	if r.located == nil {
		return nil
	}
	at, known, err := r.located.record(r.line.Value)
	if err != nil {
		return r.at(err)
	}
	if known {
		f.Spans.note(at)
	}
	return nil
}

// hash reads the whole file.
func (f *File) hash(ctx context.Context) error {
	file, err := source.OpenContent(ctx, f.Name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file that can be read twice", f.Name)
	}
	sum := sha256.New()
	switch _, err := io.Copy(sum, interruptible{ctx, file}); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	f.Hash = base64.RawURLEncoding.EncodeToString(sum.Sum(nil)[:hashBytes])
	f.version = source.Version(info)
	return nil
}

const hashBytes = 12

// interruptible reads a file until the context ends: a great one takes minutes.
type interruptible struct {
	ctx context.Context
	io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	if err := i.ctx.Err(); err != nil {
		return 0, err
	}
	return i.Reader.Read(p)
}

// rows reads the events of a file, one for each row, or for each element of it.
type rows struct {
	file    *source.File
	source  source.Source
	decoder source.Decoder
	located *located // nil without coordinates
	stream  *record.Stream
	line    source.Event
}

// open opens the file, which must be as it was read.
func (f *File) open(ctx context.Context) (_ *rows, err error) {
	r := &rows{stream: f.input.Stream}
	table := *source.WithTime(r.stream, f.input.RecordTime)
	table.Fields = append(slices.Clip(table.Fields), f.input.Coordinates.fields()...)
	if r.file, err = source.Open(ctx, f.Name, nil, ""); err != nil {
		return nil, err
	}
	if r.file.Version != f.version {
		_ = r.file.Close()
		return nil, f.changed()
	}
	if r.source, err = r.file.Events(&table); err != nil {
		_ = r.file.Close()
		return nil, err
	}
	r.decoder = source.NewDecoder(r.source, []*record.Stream{r.stream}, f.input.RecordTime)
	if c := f.input.Coordinates; c != nil {
		r.located = newLocated(c, r.source, r.stream.Topic)
	}
	return r, nil
}

// changed returns the error for a file that has changed since it was read.
func (f *File) changed() error {
	return fmt.Errorf("%s was changed while it was backfilled: it must stay as it is", f.Name)
}

func (r *rows) close() { _ = r.file.Close() }

// next reads the next row; the error is io.EOF after the last one.
func (r *rows) next() error { return r.source.Next(&r.line) }

// events decodes the row, and returns the timestamp of its record, in ms, or else the latest time of its events; record.NoTime for
// neither. There are none if the stream does not accept the row; they are valid until the next ones.
func (r *rows) events() ([]record.Event, int64, error) {
	r.line.Topic = cmp.Or(r.line.Topic, r.stream.Topic)
	events, err := r.decoder.Event(&r.line)
	if err != nil {
		return nil, r.line.RecordTime, r.at(source.WithHint(err, r.line.Value))
	}
	came := r.line.RecordTime
	for i := range events {
		if r.line.RecordTime == record.NoTime {
			came = max(came, events[i].Time)
		}
	}
	return events, came, nil
}

// at adds the location of the row to an error about it.
func (r *rows) at(err error) error { return r.source.At(r.line.Line, err) }

// checkNames returns an error if archives have a file of the same name with other content.
func checkNames(files []*File, archives []*state.Archive) error {
	var changed []error
	for _, f := range files {
		for _, a := range archives {
			for i := range a.Files {
				if known := &a.Files[i]; known.Name == f.Name && known.Stream == f.Stream && !known.Same(&f.ArchivedFile) && !hasFile(archives, f) {
					changed = append(changed, fmt.Errorf("%s was changed since it was backfilled, when it had %d rows, so what it lacks is unknown: "+
						"give the file as it was, or choose another cut, which fills everything again", f.Name, known.Rows))
				}
			}
		}
	}
	return errors.Join(changed...)
}

func hasFile(archives []*state.Archive, f *File) bool {
	return slices.ContainsFunc(archives, func(a *state.Archive) bool {
		return slices.ContainsFunc(a.Files, func(known state.ArchivedFile) bool { return known.Same(&f.ArchivedFile) })
	})
}
