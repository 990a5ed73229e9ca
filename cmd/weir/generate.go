package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/generate"
)

// generateOptions are the flags of weir generate.
type generateOptions struct {
	file    string // of settings
	brokers []string
	output  string
	events  int64
	seed    uint64
	rate    float64
	live    bool
	tables  bool
}

func newGenerateCommand() *cobra.Command {
	var o generateOptions
	cmd := &cobra.Command{
		Use:   "generate (--brokers HOST:PORT,... | --config FILE | --output FILE|-)",
		Short: "Make up logins and transactions",
		Long: `Make up logins and transactions with some fraud in them, for the shipped
features. A few are late, out of order or sent twice. The same seed makes the
same events. They are written to Kafka, or into a file as lines
{"topic":…,"key":…,"value":…,"timestamp":…}, where value is the event and the
timestamp that of its record.`,
		Example: `  weir generate --brokers localhost:9092 --events 100000 --seed 7 --rate 5000
  weir generate --output - --events 10`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.Run(cmd.Context(), cmd.OutOrStdout()) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&o.brokers, "brokers", nil, "write to Kafka at these addresses")
	flags.StringVar(&o.file, "config", "", "write to Kafka as this file of settings says")
	flags.StringVar(&o.output, "output", "", "write lines to this file, or - for standard output")
	flags.Int64Var(&o.events, "events", 1000, "number of events; 0 for no end")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the random events")
	flags.Float64Var(&o.rate, "rate", 0, "events a second; 0 is as fast as they are accepted")
	flags.BoolVar(&o.live, "live", false, "events happen when they are written, not from the start of 2026 on")
	flags.BoolVar(&o.tables, "tables", false, "write the rows of the shipped tables first: merchants, and a blocked card")
	cmd.MarkFlagsOneRequired("brokers", "config", "output")
	cmd.MarkFlagsMutuallyExclusive("brokers", "output")
	cmd.MarkFlagsMutuallyExclusive("config", "output")
	return cmd
}

func (o *generateOptions) Run(ctx context.Context, stdout io.Writer) error {
	if o.events < 0 {
		return fmt.Errorf("--events %d: not below 0", o.events)
	}
	if o.rate < 0 {
		return fmt.Errorf("--rate %g: not below 0", o.rate)
	}
	switch o.output {
	case "":
		return o.toKafka(ctx)
	case "-":
		return o.toLines(ctx, stdout)
	}
	file, err := os.Create(o.output)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	return errors.Join(o.toLines(ctx, file), file.Close())
}

func (o *generateOptions) generator() *generate.Generator {
	options := generate.Demo()
	if o.live {
		options.Clock = time.Now
	}
	return generate.New(o.seed, options)
}

func (o *generateOptions) toLines(ctx context.Context, out io.Writer) error {
	buffered := bufio.NewWriterSize(out, 1<<16)
	err := o.publish(ctx, generate.ToLines(buffered))
	return errors.Join(err, buffered.Flush())
}

func (o *generateOptions) toKafka(ctx context.Context) error {
	cfg, err := config.Load(o.file, nil)
	if err != nil {
		return err
	}
	if o.brokers != nil {
		cfg.Kafka.Brokers = o.brokers
	}
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return err
	}
	writer := generate.NewKafkaWriter(transport, cfg.Kafka.Brokers)
	err = o.publish(ctx, generate.ToKafka(writer))
	return errors.Join(err, writer.Close())
}

func (o *generateOptions) publish(ctx context.Context, write generate.Write) error {
	if o.tables {
		at := generate.Start
		if o.live {
			at = time.Now()
		}
		if err := write(ctx, generate.Rows(at)); err != nil {
			return err
		}
	}
	return generate.Publish(ctx, o.generator(), o.events, o.rate, write)
}
