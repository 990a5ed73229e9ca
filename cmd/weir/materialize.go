package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/memory"
)

// materializeOptions are the flags of weir materialize.
type materializeOptions struct {
	features              []string
	stream, input, output string
	columns               []string
}

func newMaterializeCommand() *cobra.Command {
	var o materializeOptions
	cmd := &cobra.Command{
		Use:   "materialize --features PATH --stream NAME --input FILE --output FILE",
		Short: "Make a training set from a file of events",
		Long: `Replay a file of events, in its order, through the plan and the merge code that
answer questions in production, and write for each event its id and its features
as of that event, itself included.

The input is a .csv, whose column names are paths of the stream's fields, or an
.ndjson, a JSON object on each line, as the topic has them. The output is a .csv,
in which null is empty and values by category are an object in JSON, or a .parquet,
whose columns have the types of the features and fields; only it can hold features
that answer with a list. A .csv and an .ndjson may be compressed: .gz behind the name. The output is there once it is
whole. An event that cannot be used ends the command with its file:line: message.`,
		Example: `  weir materialize --features config/features --stream transaction --input 2026-01.csv.gz --output train.csv
  weir materialize --features config/features --stream login --input logins.ndjson --output train.csv.gz \
      --columns user_id,device_users_30d
  weir materialize --features config/features --stream transaction --input 2026-01.csv.gz --output train.parquet`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.ErrOrStderr()) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.features, "features", nil, "definitions: files, or folders of *.yaml")
	flags.StringVar(&o.stream, "stream", "", "the stream whose events the input holds")
	flags.StringVar(&o.input, "input", "", "events: .csv or .ndjson, each also .gz")
	flags.StringVar(&o.output, "output", "", "the training set: .csv, .csv.gz or .parquet")
	flags.StringSliceVar(&o.columns, "columns", nil, "features and fields to write, in order (default: all features over the stream)")
	for _, name := range []string{"features", "stream", "input", "output"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
	return cmd
}

func (o *materializeOptions) run(ctx context.Context, screen io.Writer) (err error) {
	registry, err := definition.Load(o.features...)
	if err != nil {
		return err
	}
	stream, ok := registry.Stream(o.stream)
	if !ok {
		var known []string
		for _, s := range registry.Streams {
			known = append(known, s.Name)
		}
		return fmt.Errorf("--stream: %s", spelling.Unknown("stream", o.stream, known))
	}
	newWriter, err := o.writer()
	if err != nil {
		return err
	}
	columns, err := materialize.Columns(registry, stream, o.columns, o.parquet())
	if err != nil {
		return fmt.Errorf("--columns: %w", err)
	}
	in, err := os.Open(o.input)
	if err != nil {
		return fmt.Errorf("--input: %w", err)
	}
	defer in.Close()
	if same(in, o.output) {
		return fmt.Errorf("--output: %s is the input", o.output)
	}
	progress := newProgress(screen, in, time.Now)
	source, err := o.source(progress, stream)
	if err != nil {
		return err
	}
	replay := materialize.Replay{Registry: registry, Stream: stream, Columns: columns, State: memory.NewKeyed(packed.NewSecret()), Progress: progress.show}
	var summary materialize.Summary
	err = whole(o.output, func(out io.Writer) error {
		w, err := newWriter(out, stream, columns)
		if err == nil {
			summary, err = replay.Run(ctx, source, w)
		}
		return err
	})
	progress.end(summary, err)
	return err
}

// parquet says whether the output is a Parquet file.
func (o *materializeOptions) parquet() bool { return filepath.Ext(o.output) == ".parquet" }

// writer finds what writes the output by its name.
func (o *materializeOptions) writer() (func(io.Writer, *record.Stream, []materialize.Column) (materialize.Writer, error), error) {
	switch name := strings.TrimSuffix(o.output, ".gz"); {
	case o.parquet():
		return materialize.NewParquetWriter, nil
	case filepath.Ext(name) == ".csv":
		return materialize.NewCSVWriter, nil
	case filepath.Ext(name) == ".parquet":
		return nil, fmt.Errorf("--output: %s: a .parquet is compressed inside; leave out .gz", o.output)
	default:
		return nil, fmt.Errorf("--output: %s is none of .csv, .csv.gz and .parquet", o.output)
	}
}

// source opens the input by its name.
func (o *materializeOptions) source(in io.Reader, stream *record.Stream) (materialize.Source, error) {
	name, compressed := strings.CutSuffix(o.input, ".gz")
	format := filepath.Ext(name)
	if format == ".parquet" {
		return nil, fmt.Errorf("--input: %s: a .parquet can only be written; events are read from .csv and .ndjson, each also .gz", o.input)
	}
	if format != ".csv" && format != ".ndjson" {
		return nil, fmt.Errorf("--input: %s is none of .csv, .ndjson, .csv.gz and .ndjson.gz", o.input)
	}
	if compressed {
		unzipped, err := gzip.NewReader(bufio.NewReaderSize(in, 1<<16))
		if err != nil {
			return nil, fmt.Errorf("--input: %s: %w", o.input, err)
		}
		in = unzipped
	}
	if format == ".ndjson" {
		return materialize.NewLines(o.input, in), nil
	}
	return materialize.NewCSV(o.input, in, stream)
}

// same says whether a name is that of an open file.
func same(file *os.File, name string) bool {
	one, err1 := file.Stat()
	other, err2 := os.Stat(name)
	return err1 == nil && err2 == nil && os.SameFile(one, other)
}

// whole writes a file that is there only once all of it is. It is compressed if
// its name ends in .gz.
func whole(name string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		if failed, ok := errors.AsType[*os.PathError](err); ok {
			failed.Path = name
		}
		return fmt.Errorf("--output: %w", err)
	}
	buffered := bufio.NewWriterSize(file, 1<<16)
	if filepath.Ext(name) == ".gz" {
		zipped := gzip.NewWriter(buffered)
		err = errors.Join(write(zipped), zipped.Close())
	} else {
		err = write(buffered)
	}
	err = errors.Join(err, buffered.Flush(), file.Chmod(0o644), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), name)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}
