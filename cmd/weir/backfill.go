package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/pipeline"
	"github.com/weir-stream/weir/pipeline/backfill"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

func newBackfillCommand() *cobra.Command {
	var (
		names []string
		rate  float64
		files fromFiles
	)
	cmd := &cobra.Command{
		Use:   "backfill",
		Short: "Fill new features from the log, or from files where it no longer reaches back",
		Long: `Fill new features from the log, while events flow, and end when they are complete.
Processors do this by themselves unless backfill.mode is off. Both may run at
once, and each record still counts once. The processors must have loaded the
definitions, which are those of --config and --features. The command may be stopped
and started again at any time.

With --input, features are filled from files with what their log no longer has. With
--until, events before that moment, by their own times, count if they are in the files,
all others if they are in the log. With --offsets, each partition is divided after its
last record in the files: records up to there count if they are in the files, all
later ones if they are in the log. Files need no order, and may overlap the log. Each
row counts once, whatever is killed and however often the command runs: a file is
known by its content. Meanwhile features answer as before. Files are .csv, whose column names are paths of the stream's
fields, .ndjson, with one JSON object a line, as in the topic or as weir generate writes
them, .avro and .parquet; the first two also as .gz or .zst. They may be objects of an
S3-compatible store, named s3://BUCKET/KEY.`,
		Example: `  weir backfill --config config/weir.yaml
  weir backfill --config config/weir.yaml --of device_tx_7d,user_logins_1h --rate 1
  weir backfill --config config/weir.yaml --input 'transaction=history/*.parquet' --until 2026-01-01T00:00:00Z
  weir backfill --config config/weir.yaml --input 'transaction=s3://history/tx/*.parquet' --until 2026-01-01T00:00:00Z
  weir backfill --config config/weir.yaml --input 'transaction=sink/*.parquet' --offsets topic,partition,offset`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(files.inputs) > 0 {
			return withGivenState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, store connect.Store) error {
				files.cfg, files.registry, files.store, files.out = cfg, registry, store, cmd.OutOrStdout()
				files.screen = &fillScreen{out: files.out, said: map[string]string{}}
				var err error
				if files.rate, err = rateOf(rate, cfg); err != nil {
					return err
				}
				return files.run(cmd.Context())
			})
		}
		if err := files.needless(); err != nil {
			return err
		}
		return withGivenState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, state connect.Store) error {
			rate, err := rateOf(rate, cfg)
			if err != nil {
				return err
			}
			return fillFromLog(cmd.Context(), cfg, registry, state, rate, names, cmd.OutOrStdout())
		})
	}
	cmd.Flags().StringSliceVar(&names, "of", nil, "features to fill, with those that were defined together with them (default all)")
	cmd.Flags().Float64Var(&rate, "rate", 0, "share of a core to take, 0.01 to 1; by default backfill.rate")
	files.flags(cmd)
	return cmd
}

// rateOf returns the given rate, or else the rate of the settings.
func rateOf(given float64, cfg *config.Config) (float64, error) {
	if given == 0 {
		given = cfg.Backfill.Rate
	}
	if given < 0.01 || given > 1 {
		return 0, fmt.Errorf("--rate %v is not allowed: 0.01 to 1", given)
	}
	return given, nil
}

// fillsOf returns a function that reports whether the named features need a fill; without names all are needed.
func fillsOf(registry *features.Registry, names []string) (func(*state.Fill) bool, error) {
	for _, name := range names {
		if _, ok := registry.Feature(name); !ok {
			return nil, fmt.Errorf("there is no feature %q", name)
		}
	}
	return func(f *state.Fill) bool {
		return len(names) == 0 || slices.ContainsFunc(registry.FilledBy(f), func(name string) bool { return slices.Contains(names, name) })
	}, nil
}

var (
	errNothingToFill = errors.New("nothing to fill")
	errNotFilled     = errors.New("the backfill of some partitions was given up; the processors start it again: try again in a minute")
)

// fillFromLog fills the named features, or all, from the log. It continues when the definitions are bound to another
// plan.
func fillFromLog(ctx context.Context, cfg *config.Config, given *features.Registry, kept store.Store, rate float64, names []string, out io.Writer) error {
	screen := &fillScreen{out: out, said: map[string]string{}}
	for {
		bound, err := backfill.Bind(ctx, kept, given)
		if err != nil {
			return err
		}
		wanted, err := fillsOf(bound.Registry, names)
		if err != nil {
			return err
		}
		switch err := runBackfill(ctx, cfg, bound, kept, rate, wanted, screen); {
		case errors.Is(err, backfill.ErrRebound):
			continue
		case errors.Is(err, errNothingToFill):
			if err := loaded(bound, names); err != nil {
				return err
			}
			fmt.Fprintln(out, "nothing to fill: no feature is new to the namespace")
			return nil
		case err != nil:
			return err
		}
		if bound, err = backfill.Bind(ctx, kept, given); err != nil {
			return err
		}
		return loaded(bound, names)
	}
}

// loaded returns an error if some processor does not feed the named features, or all without names: there will be
// something to fill of them.
func loaded(bound *backfill.Binding, names []string) error {
	lacking := slices.DeleteFunc(bound.Registry.Unfed(bound.History), func(name string) bool { return len(names) > 0 && !slices.Contains(names, name) })
	if len(lacking) == 0 {
		return nil
	}
	return fmt.Errorf("the processors have not loaded these definitions yet, so %s cannot be filled: try again when they have", strings.Join(lacking, ", "))
}

// runBackfill fills all partitions until the wanted fills are done, or the binding ends, see
// backfill.Binding.Watch.
func runBackfill(ctx context.Context, cfg *config.Config, bound *backfill.Binding, kept store.Store,
	rate float64, wanted func(*state.Fill) bool, screen *fillScreen) error {
	registry := bound.Registry
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Timeout: 10 * time.Second}
	partitions, err := lag.Partitions(ctx, client, registry.Topics())
	if err != nil {
		return err
	}
	cache, err := connect.Schemas(cfg)
	if err != nil {
		return err
	}
	defer cache.Close()
	screen.registry, screen.fills, screen.broken = registry, false, false
	watched, stop := bound.Watch(ctx, wanted)
	defer stop()
	dead := pipeline.NewDeadLetterWriter(cfg.Kafka.Brokers, transport, cfg.Kafka.DeadLetterTopic)
	defer dead.Close()
	b := backfill.New(backfill.Config{
		Store: kept, Namespace: cfg.Namespace, DeadLetters: dead,
		Transport: transport, Brokers: cfg.Kafka.Brokers, Isolation: connect.Isolation(cfg),
		MaxRecordBytes: int(cfg.Kafka.MaxRecordBytes), Schemas: cache, Rate: rate, Logger: slog.New(shownLog{screen}),
		MaxEvents: cfg.Processor.Batch.MaxEvents, MaxBytes: int(cfg.Processor.Batch.MaxBytes),
	})
	b.Run(watched, backfill.Work{
		Registry: registry, Partitions: func() []state.Partition { return partitions }, Of: wanted, Until: screen.until,
	})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case watched.Err() != nil:
		return context.Cause(watched)
	case !screen.fills:
		return errNothingToFill
	case screen.broken:
		return errNotFilled
	}
	return nil
}

// shownLog shows the warnings and errors of a log: while a server is away, a backfill waits.
type shownLog struct{ screen *fillScreen }

func (shownLog) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

func (l shownLog) Handle(_ context.Context, r slog.Record) error {
	line, cause := r.Message, ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "error" {
			cause = ": " + a.Value.String()
		} else {
			line += ", " + a.Key + " " + a.Value.String()
		}
		return true
	})
	l.screen.mu.Lock()
	defer l.screen.mu.Unlock()
	l.screen.say("trouble", line+cause)
	return nil
}

func (l shownLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l shownLog) WithGroup(string) slog.Handler      { return l }

// fillScreen shows the progress of fills.
type fillScreen struct {
	out      io.Writer
	registry *features.Registry

	mu     sync.Mutex
	said   map[string]string // last, by fill
	fills  bool              // there are some
	broken bool
}

// until shows the progress of a fill, and reports whether no more can be done.
func (s *fillScreen) until(f *state.Fill, p backfill.Progress) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fills = true
	share := "not begun"
	if p.All > 0 {
		share = fmt.Sprintf("%s, %d of %d records", lag.Percent(p.Filled, p.All), p.Filled, p.All)
	}
	enough := p.Done || len(p.Broken) > 0 && p.Filled == p.All
	switch {
	case p.Done:
		share = fmt.Sprintf("done, %d records", p.All)
	case len(p.Broken) > 0:
		s.broken = true
		share += fmt.Sprintf("; %d partitions were given up", len(p.Broken))
	}
	s.say(f.ID, strings.Join(s.registry.FilledBy(f), ", ")+": "+share)
	return enough
}

// say writes a line about a subject, unless it is the same as the last one.
func (s *fillScreen) say(about, line string) {
	if s.said[about] != line {
		s.said[about] = line
		fmt.Fprintln(s.out, line)
	}
}

// boundFills holds the fills over cuts of the definitions' present binding.
type boundFills struct {
	*backfill.Binding
	fills   []*state.Fill
	pending []string // features for which there is no fill
}

func (f *fromFiles) bind(ctx context.Context, all []*backfill.FromFiles) (*boundFills, error) {
	binding, err := backfill.Bind(ctx, f.store, f.registry)
	if err != nil {
		return nil, err
	}
	bound := &boundFills{Binding: binding}
	for _, b := range all {
		fills, pending, err := binding.FillsOver(ctx, b.Cut)
		if err != nil {
			return nil, err
		}
		bound.fills, bound.pending = append(bound.fills, fills...), append(bound.pending, pending...)
	}
	return bound, nil
}

func (b *boundFills) has(fill *state.Fill) bool {
	return slices.ContainsFunc(b.fills, func(f *state.Fill) bool { return f.ID == fill.ID })
}

func (b *boundFills) whole() bool {
	done := 0
	for i := range b.History.Fills {
		if e := &b.History.Fills[i]; b.has(e.Fill) && e.Done() {
			done++ // a cut, and so a fill over it, is of one topic
		}
	}
	return len(b.pending) == 0 && done == len(b.fills)
}
