package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
)

// allInputs opens the files of events.
func (o *materializeOptions) allInputs(ctx context.Context, registry *features.Registry) (inputs []materialize.Input, err error) {
	var before []*source.File // of the inputs
	for _, spec := range o.inputs {
		name, pattern, named := splitInput(spec)
		if !named {
			name = o.stream
		}
		files, err := filesOf(ctx, pattern, o.screen)
		if err != nil {
			return nil, err
		}
		var stream *record.Stream
		if name != "" {
			if stream, err = streamOf(registry, name, spec); err != nil {
				return nil, err
			}
		} else if len(registry.Streams) == 1 {
			stream = registry.Streams[0]
		}
		for _, file := range files {
			f, err := o.openFile(ctx, file)
			if err != nil {
				return nil, err
			}
			of := stream
			if !named && f.Enveloped() {
				of = nil // all streams, by the topics of the envelopes
			}
			for i, other := range before {
				if in := &inputs[i]; !f.Is(other) || of != nil && in.Stream != nil && in.Stream != of {
					continue
				}
				return nil, fmt.Errorf("%s is an input twice, so its events would count twice", file)
			}
			if err := f.Pause(); err != nil {
				return nil, err
			}
			before = append(before, f)
			inputs = append(inputs, materialize.Input{Name: f.Name, Stream: of, Open: f.Events, Close: f.Close, Read: f.Read})
		}
	}
	return inputs, nil
}

// splitInput splits an input into the name of its stream, if it has one, and its files, whose folders may be named like
// dt=2026-01-31.
func splitInput(spec string) (stream, files string, named bool) {
	stream, files, named = strings.Cut(spec, "=")
	if !named || strings.ContainsRune(filepath.ToSlash(stream), '/') {
		return "", spec, false
	}
	return stream, files, true
}

// filesOf finds the files of a name, a folder or a pattern, and says which of them it leaves out.
func filesOf(ctx context.Context, pattern string, screen io.Writer) ([]string, error) {
	files, others, err := source.Files(ctx, pattern)
	if len(others) > 0 {
		more := ""
		if n := len(others) - 1; n > 0 {
			more = " and " + strconv.Itoa(n) + " more"
		}
		fmt.Fprintf(screen, "%s: left out, being none of .csv, .ndjson, .avro and .parquet: %s%s\n", pattern, others[0], more)
	}
	return files, err
}

// openTopics opens the topics that a replay needs, one input for each partition.
func (o *materializeOptions) openTopics(ctx context.Context, cfg *config.Config, r *materialize.Replay) (inputs []materialize.Input, err error) {
	now := time.Now()
	since, until, err := o.span(now)
	if err != nil {
		return nil, err
	}
	r.Until, r.Began = until, now.UnixMilli()
	if r.Seal, err = sealOf(ctx, cfg); err != nil {
		return nil, err
	}
	logs, closeLogs, err := openTopics(ctx, cfg, r.Topics(), since, r.Registry.Streams)
	if err != nil {
		return nil, err
	}
	o.open = append(o.open, closing(closeLogs))
	for _, l := range logs {
		inputs = append(inputs, materialize.Input{Name: l.Name(), Log: l, Read: l.Progress})
	}
	return inputs, nil
}

// sealOf returns the seal of the settings' namespace. If neither a file nor Redis says it, copies of dead letters cannot
// be told from what others may have written, and are events like any other.
func sealOf(ctx context.Context, cfg *config.Config) (state.Seal, error) {
	key, err := cfg.SealKey()
	if err != nil || key != nil {
		return state.NewSeal(key), err
	}
	store, err := openStore(cfg)
	if err != nil {
		return state.Seal{}, err
	}
	defer func() { _ = store.Close() }()
	ctx, cancel := context.WithTimeout(ctx, sealPatience)
	defer cancel()
	if err := store.Adopt(ctx); err != nil {
		return state.Seal{}, nil
	}
	seal, err := store.Seal(ctx)
	if err != nil {
		return state.Seal{}, nil
	}
	return seal, nil
}

// secretOf returns the secret with which the settings' namespace hashes values.
func secretOf(ctx context.Context, cfg *config.Config) (state.Secret, error) {
	store, err := adopted(ctx, cfg, openStore)
	if err != nil {
		return state.Secret{}, err
	}
	defer func() { _ = store.Close() }()
	return secretIn(ctx, cfg, store)
}

// secretIn returns the secret with which the settings' namespace hashes values. It fails if the namespace has not been
// created: that nothing is in it says nothing about entities.
func secretIn(ctx context.Context, cfg *config.Config, of connect.Store) (state.Secret, error) {
	secret, err := of.Secret(ctx)
	if err == nil && secret == (state.Secret{}) {
		err = fmt.Errorf("namespace %q has not been created", cfg.Namespace)
	}
	return secret, err
}

// sealPatience is how long a training set waits for the store, which it needs for nothing else.
const sealPatience = 2 * time.Second

// span returns the bounds of the wanted records' timestamps, in ms; 0 is no bound.
func (o *materializeOptions) span(now time.Time) (since, until int64, err error) {
	for _, bound := range []struct {
		flag, text string
		to         *int64
	}{{"--since", o.since, &since}, {"--until", o.until, &until}} {
		at, err := parseMoment(bound.flag, bound.text, now)
		if err != nil {
			return 0, 0, err
		}
		if !at.IsZero() {
			*bound.to = at.UnixMilli()
		}
	}
	if until != 0 && until <= since {
		return 0, 0, fmt.Errorf("--until %s is not after --since %s", o.until, o.since)
	}
	return since, until, nil
}

type closing func()

func (c closing) Close() error { c(); return nil }

func (o *materializeOptions) openFile(ctx context.Context, name string) (*source.File, error) {
	if name == source.Stdin {
		if o.inputFormat != source.CSV && o.inputFormat != source.NDJSON && o.inputFormat != source.Parquet {
			return nil, fmt.Errorf("--input-format %s: expected ndjson or csv", o.inputFormat)
		}
		if o.stdinTaken {
			return nil, errors.New("the standard input is an --input already")
		}
		o.stdinTaken = true
	}
	f, err := source.Open(ctx, name, o.stdin, o.inputFormat)
	if err == nil {
		o.open, o.files = append(o.open, f), append(o.files, f)
	}
	return f, err
}

func (o *materializeOptions) openSpine(ctx context.Context) (*materialize.Spine, error) {
	f, err := o.openFile(ctx, o.spine)
	if err != nil {
		return nil, err
	}
	t, err := f.Table()
	if err != nil {
		return nil, err
	}
	return materialize.NewSpine(t, o.timeColumn)
}

// format returns the format of the output, empty if its name has none.
func (o *materializeOptions) format() string {
	if o.output == source.Stdin {
		return o.outputFormat
	}
	format, _ := source.FormatOf(o.output)
	return format
}

// writer finds the writer for the output's format.
func (o *materializeOptions) writer() (func(io.Writer, []materialize.Column) (materialize.Writer, error), error) {
	all := []string{string(materialize.FloatDecimals), string(materialize.TextDecimals), string(materialize.NativeDecimals)}
	if !slices.Contains(all, o.decimals) {
		return nil, fmt.Errorf("--decimals: %s", spelling.Unknown("type", o.decimals, all))
	}
	_, compression := source.FormatOf(o.output)
	switch format := o.format(); {
	case format == source.Parquet && compression != "":
		return nil, fmt.Errorf("--output: %s: a .parquet is compressed inside; leave out %s", o.output, compression)
	case format == source.Parquet:
		return func(out io.Writer, columns []materialize.Column) (materialize.Writer, error) {
			return materialize.NewParquetWriter(out, columns, materialize.Decimals(o.decimals))
		}, nil
	case format == source.CSV:
		return materialize.NewCSVWriter, nil
	case o.output == source.Stdin:
		return nil, fmt.Errorf("--output-format %s: expected csv or parquet", o.outputFormat)
	default:
		return nil, fmt.Errorf("--output: %s is none of .csv, .csv.gz, .csv.zst and .parquet", o.output)
	}
}

// whole writes the output to a file that appears only when it is complete. It is compressed
// according to its name.
func (o *materializeOptions) whole(write func(io.Writer) error) error {
	if o.output == source.Stdin {
		buffered := bufio.NewWriterSize(o.stdout, 1<<16)
		return errors.Join(write(buffered), buffered.Flush())
	}
	file, err := createBeside(o.output)
	if err != nil {
		if failed, ok := errors.AsType[*os.PathError](err); ok {
			failed.Path = o.output
		}
		return fmt.Errorf("--output: %w", err)
	}
	buffered := bufio.NewWriterSize(file, 1<<16)
	_, compression := source.FormatOf(o.output)
	err = compressed(buffered, compression, write)
	err = errors.Join(err, buffered.Flush(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), o.output)
	}
	if err != nil {
		_ = os.Remove(file.Name())
	}
	return err
}

// createBeside creates a file beside another one, which it is to replace. It may be read by those who may read that one,
// or else by those to whom the umask leaves it.
func createBeside(path string) (*os.File, error) {
	file, err := os.OpenFile(path+"."+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if before, err := os.Stat(path); err == nil {
		if err := file.Chmod(before.Mode().Perm()); err != nil {
			return nil, errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}
	return file, nil
}

// compressed writes through a compression, .gz, .zst or none.
func compressed(out io.Writer, compression string, write func(io.Writer) error) error {
	switch compression {
	case ".gz":
		zipped := gzip.NewWriter(out)
		return errors.Join(write(zipped), zipped.Close())
	case ".zst":
		zipped, err := zstd.NewWriter(out)
		if err != nil {
			return err
		}
		return errors.Join(write(zipped), zipped.Close())
	default:
		return write(out)
	}
}
