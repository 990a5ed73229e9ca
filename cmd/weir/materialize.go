package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/materialize"
	"github.com/weir-stream/weir/materialize/source"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/memory"
)

// materializeOptions are the flags of weir materialize.
type materializeOptions struct {
	*settings
	inputs, tables            []string
	fromTopics                bool
	since, until              string
	stream, spine, output     string
	timeColumn, recordTime    string
	service, as, memory       string
	inputFormat, outputFormat string
	decimals                  string
	columns                   []string
	excludeCurrent, quality   bool
	namespaceSecret           bool

	stdin      io.Reader
	stdinTaken bool
	stdout     io.Writer
	screen     io.Writer
	open       []io.Closer
	files      []*source.File
}

func newMaterializeCommand() *cobra.Command {
	var o materializeOptions
	cmd := &cobra.Command{
		Use:   "materialize {--input [STREAM=]FILE... | --from-topics} {--spine FILE | --stream NAME} --output FILE",
		Short: "Make a training set from files of events, or from topics",
		Long: `Replay files of events, or the records of topics, sorted by time, through the compiled
definitions and the merge code that answer questions in production, and write rows with
the features as of the moment of each.

The rows are those of --spine: a file with a column for each key of the features, a time
in the column at (milliseconds, or RFC 3339), and others, such as a label, which are
copied. A row counts all events up to and including that millisecond. Or the rows are the events of a
--stream, each with its ID, its time, its keys and the features as of that event, itself
included.

Events are read from .csv, whose column names are paths of the stream's fields, .ndjson,
with one JSON object a line, as in the topic or as weir generate writes them, .avro and
.parquet; the first two also as .gz or .zst. They may be objects of an S3-compatible store,
named s3://BUCKET/KEY. - is standard input. The output is a .csv, in
which null is empty and values by category are a JSON object, or a .parquet, whose
columns have types; only Parquet can hold features that answer with a list. The output
appears when it is complete. An event that cannot be used ends the command with
file:line: message.

With --from-topics the events are what the topics hold when the command starts, or what
came before --until, in the formats of their streams, and the rows of a --spine must be
of before both. Only topics that the features need are read, and no group is joined. An
event that cannot be used is skipped and counted. A value that lacks events, because
retention has removed them or because they are older than --since, has the status
INCOMPLETE: see --quality.`,
		Example: `  weir materialize --features config/features --service payment_risk \
      --input transaction=tx.parquet --input login=logins.ndjson.gz --spine labels.csv --output train.parquet
  weir materialize --features config/features --stream transaction --input 2026-01.csv.gz --output train.csv
  weir materialize --config config/weir.yaml --service payment_risk --from-topics --since 90d \
      --spine labels.csv --output train.parquet
  weir generate --events 10000 --output - | weir materialize --features config/features --stream transaction \
      --service payment_risk --input - --output -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.stdin, o.stdout, o.screen = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			return o.Run(cmd)
		},
	}
	o.settings = addSettings(cmd)
	o.flags(cmd)
	return cmd
}

func (o *materializeOptions) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&o.inputs, "input", nil, "events: [STREAM=]FILE, a folder or a pattern, also s3://BUCKET/KEY; may be given several times")
	flags.StringArrayVar(&o.tables, "table", nil, "rows of a table: TABLE=FILE (default its file, or its topic with --from-topics)")
	flags.BoolVar(&o.fromTopics, "from-topics", false, "read the events from their topics")
	flags.StringVar(&o.since, "since", "", "with --from-topics: only records from then on: RFC 3339, milliseconds, or how long ago, such as 90d (default all)")
	flags.StringVar(&o.until, "until", "", "with --from-topics: only records before then: RFC 3339, milliseconds, or how long ago (default all)")
	flags.StringVar(&o.spine, "spine", "", "the rows: a file of entities, moments and labels, also s3://BUCKET/KEY")
	flags.StringVar(&o.timeColumn, "time-column", materialize.TimeColumn, "the spine's column of moments")
	flags.StringVar(&o.stream, "stream", "", "the rows are the events of this stream, which are also those of an --input without a name")
	flags.StringVar(&o.output, "output", "", "the training set: .csv, also .gz or .zst, .parquet, or - for standard output")
	flags.StringSliceVar(&o.columns, "columns", nil, "features and fields to write, in order (default: all features that can be computed)")
	flags.StringVar(&o.service, "service", "", "write the features of this service")
	flags.StringVar(&o.as, "as", "events", "events: each counts from its own time on; served: from when its record arrived")
	flags.StringVar(&o.recordTime, "record-time", "", "the field that says when a record arrived (default: the timestamp of its envelope)")
	flags.BoolVar(&o.excludeCurrent, "exclude-current", false, "with --stream: the features as of before the event")
	flags.BoolVar(&o.quality, "quality", false, "write with each feature its status, whether a bound was reached, and its error")
	flags.BoolVar(&o.namespaceSecret, "namespace-secret", false, "hash values with the secret of the settings' namespace, from Redis: its estimates to the digit")
	flags.StringVar(&o.memory, "memory", config.Bytes(materialize.DefaultMemory).String(), "events and rows held in memory; more are sorted on disk")
	flags.StringVar(&o.decimals, "decimals", string(materialize.FloatDecimals), "their type in Parquet: float, string or decimal")
	flags.StringVar(&o.inputFormat, "input-format", source.NDJSON, "of standard input: ndjson or csv")
	flags.StringVar(&o.outputFormat, "output-format", source.CSV, "of standard output: csv or parquet")
	if err := cmd.MarkFlagRequired("output"); err != nil {
		panic(err)
	}
	cmd.MarkFlagsOneRequired("input", "from-topics")
	cmd.MarkFlagsMutuallyExclusive("input", "from-topics")
	cmd.MarkFlagsMutuallyExclusive("input", "since")
	cmd.MarkFlagsMutuallyExclusive("input", "until")
	cmd.MarkFlagsMutuallyExclusive("record-time", "from-topics")
	cmd.MarkFlagsMutuallyExclusive("spine", "stream")
	cmd.MarkFlagsMutuallyExclusive("spine", "exclude-current")
}

// replayGarbage is the GC percentage of a replay: it keeps much in memory, and little of it becomes garbage.
const replayGarbage = 100

func (o *materializeOptions) Run(cmd *cobra.Command) (err error) {
	defer func() {
		for _, f := range o.open {
			_ = f.Close()
		}
	}()
	cfg, registry, err := o.loadAll(cmd)
	if err != nil {
		return err
	}
	ctx := cmd.Context()
	replay, err := o.replay(ctx, cfg, registry)
	if err != nil {
		return err
	}
	newWriter, err := o.writer()
	if err != nil {
		return err
	}
	for _, f := range o.files {
		if f.Same(o.output) {
			return fmt.Errorf("--output: %s is the input", o.output)
		}
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(replayGarbage)
	}
	progress := newProgress(o.screen, time.Now)
	replay.Progress = progress.show
	var summary materialize.Summary
	err = o.whole(func(out io.Writer) (err error) {
		summary, err = replay.Run(ctx, func(columns []materialize.Column) (materialize.Writer, error) { return newWriter(out, columns) })
		return err
	})
	progress.end(summary, err)
	return err
}

// replay makes the replay that the flags describe.
func (o *materializeOptions) replay(ctx context.Context, cfg *config.Config, registry *features.Registry) (*materialize.Replay, error) {
	size, err := config.ParseBytes(o.memory)
	if err != nil {
		return nil, fmt.Errorf("--memory: %s %w", o.memory, err)
	}
	if o.as != "events" && o.as != "served" {
		return nil, fmt.Errorf("--as %s: expected events or served", o.as)
	}
	if o.recordTime != "" && o.as != "served" {
		return nil, errors.New("--record-time needs --as served: otherwise it does not matter when a record arrived")
	}
	secret := state.NewSecret()
	if o.namespaceSecret {
		if secret, err = secretOf(ctx, cfg); err != nil {
			return nil, fmt.Errorf("--namespace-secret: %w", err)
		}
	}
	r := &materialize.Replay{
		Registry: registry, NewState: func() materialize.State { return memory.NewKeyed(secret) }, Memory: int64(size),
		AsServed: o.as == "served", RecordTime: o.recordTime, ExcludeCurrent: o.excludeCurrent,
		MaxRecordBytes: int(cfg.Kafka.MaxRecordBytes),
	}
	if o.stream != "" {
		if r.Stream, err = streamOf(registry, o.stream, "--stream"); err != nil {
			return nil, err
		}
	}
	streams := registry.Streams
	if !o.fromTopics {
		if r.Inputs, err = o.allInputs(ctx, registry); err != nil {
			return nil, fmt.Errorf("--input: %w", err)
		}
		streams = streamsOf(registry, r.Inputs)
	}
	if o.spine != "" {
		if r.Spine, err = o.openSpine(ctx); err != nil {
			return nil, fmt.Errorf("--spine: %w", err)
		}
	} else if r.Stream == nil {
		if r.Stream, err = onlyStream(streams); err != nil {
			return nil, err
		}
	}
	files, err := o.tableFiles()
	if err != nil {
		return nil, fmt.Errorf("--table: %w", err)
	}
	s := materialize.Selection{
		Registry: registry, Inputs: streams, Stream: r.Stream, Spine: r.Spine,
		Service: o.service, Names: o.columns, Lists: o.format() == source.Parquet, Quality: o.quality, ExcludeCurrent: o.excludeCurrent,
		HasRows: func(t *features.Table) bool { return t.File != "" || o.fromTopics || files[t.Name] != "" },
	}
	if r.Columns, err = s.Columns(); err != nil {
		return nil, fmt.Errorf("%s: %w", cmp.Or(o.why(), "--input"), err)
	}
	o.sayLeftOut(s.LeftOut)
	if o.fromTopics {
		if r.Inputs, err = o.openTopics(ctx, cfg, r); err != nil {
			return nil, fmt.Errorf("--from-topics: %w", err)
		}
	}
	if r.Tables, err = o.tablesOf(ctx, cfg, r, files); err != nil {
		return nil, fmt.Errorf("--table: %w", err)
	}
	return r, nil
}

// sayLeftOut says which features have no columns, and why.
func (o *materializeOptions) sayLeftOut(reasons []error) {
	const most = 5
	for _, why := range reasons[:min(len(reasons), most)] {
		fmt.Fprintf(o.screen, "left out: %v\n", why)
	}
	if more := len(reasons) - most; more > 0 {
		fmt.Fprintf(o.screen, "left out: %s; name features with --columns or --service to see why\n", spelling.Counted(more, "more feature"))
	}
}

// why returns the flag that selects the features.
func (o *materializeOptions) why() string {
	switch {
	case o.columns != nil:
		return "--columns"
	case o.service != "":
		return "--service"
	default:
		return ""
	}
}

// onlyStream returns the default stream whose events are the rows: the only one.
func onlyStream(streams []*record.Stream) (*record.Stream, error) {
	if len(streams) > 0 && !slices.ContainsFunc(streams, func(s *record.Stream) bool { return s != streams[0] }) {
		return streams[0], nil
	}
	return nil, errors.New("say what the rows are: --spine FILE, or the events of --stream NAME")
}

func streamOf(registry *features.Registry, name, flag string) (*record.Stream, error) {
	s, err := registry.StreamNamed(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return s, nil
}

// streamsOf returns the streams whose events the inputs may hold.
func streamsOf(registry *features.Registry, inputs []materialize.Input) (streams []*record.Stream) {
	for _, in := range inputs {
		if in.Stream == nil {
			return registry.Streams
		}
		streams = append(streams, in.Stream)
	}
	return streams
}
