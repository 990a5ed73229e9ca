package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/preview"
	"github.com/weir-stream/weir/tables"
)

func newPreviewCommand() *cobra.Command {
	var (
		since    string
		records  int64
		examples int
		out      output
		timeout  time.Duration
	)
	cmd := &cobra.Command{
		Use:   "preview [FEATURE...]",
		Short: "Show what definitions answer on the records of the last minutes",
		Long: `Read the last minutes of the topics, compute features from them in memory, and
report what they answer now: the distribution of their values, the share of nulls, the
values of some entities, which events they leave out, and what they cost. It writes
nothing, and joins no group.

Without arguments it shows all features. A feature whose window is longer than --since
counts only a part of it, and the report says so.`,
		Example: `  weir preview --config config/weir.yaml --features new/
  weir preview --config config/weir.yaml --features new/ --since 2h device_tx_1h user_spend_1h`,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		cfg, registry, err := s.loadAll(cmd)
		if err != nil {
			return err
		}
		asked, err := featuresNamed(registry, names)
		if err != nil {
			return err
		}
		if records < 1 || examples < 0 {
			return errors.New("--records must be at least 1, and --entities at least 0")
		}
		now := time.Now()
		from, err := parseMoment("--since", since, now)
		if err != nil {
			return err
		}
		cmd.SilenceUsage = true // later errors are not about usage
		ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
		defer cancel()
		p := preview.Config{
			Registry: registry, Features: asked, Since: from.UnixMilli(), Now: now.UnixMilli(), MaxRecords: records,
			MaxRecordBytes: int(cfg.Kafka.MaxRecordBytes), Examples: examples,
		}
		report, err := runPreview(ctx, cfg, p, cmd.ErrOrStderr())
		switch {
		case ctx.Err() != nil && cmd.Context().Err() == nil:
			return fmt.Errorf("not done within %s (--timeout): %w", timeout, err)
		case err != nil:
			return err
		}
		return out.print(cmd, report)
	}
	flags := cmd.Flags()
	flags.StringVar(&since, "since", "10m", "records from then on: how long ago, or RFC 3339")
	flags.Int64Var(&records, "records", 100_000, "how many records to read at most, the newest; they are held in memory")
	flags.IntVar(&examples, "entities", 5, "how many entities to show for each feature: those with the most events")
	out.flag(cmd)
	flags.DurationVar(&timeout, "timeout", time.Minute, "how long to wait for Kafka and the Schema Registry")
	return cmd
}

// featuresNamed finds features; without names it returns all.
func featuresNamed(registry *features.Registry, names []string) (found []*features.Feature, err error) {
	if len(names) == 0 {
		if len(registry.Features) == 0 {
			return nil, errors.New("the definitions have no features")
		}
		return registry.Features, nil
	}
	for _, name := range names {
		f, err := registry.FeatureNamed(name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(found, f) {
			found = append(found, f)
		}
	}
	return found, nil
}

// runPreview opens the topics and reads the tables that the features need.
func runPreview(ctx context.Context, cfg *config.Config, p preview.Config, screen io.Writer) (*preview.Report, error) {
	logs, closeLogs, err := openTopics(ctx, cfg, preview.Topics(p.Registry, p.Features), p.Since, nil)
	if err != nil {
		return nil, err
	}
	defer closeLogs()
	for _, l := range logs {
		p.Logs = append(p.Logs, l)
	}
	var rows []*tables.Contents
	for _, t := range features.TablesOf(p.Features) {
		c, err := readTable(ctx, cfg, t, tables.Newest, screen)
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", t.Name, brokers.Plainly(err))
		}
		rows = append(rows, c)
	}
	p.Tables = tables.Fixed(rows...)
	report, err := preview.Run(ctx, p)
	if err == nil && report.Records == 0 && !report.Cut {
		err = fmt.Errorf("no record since %s: choose an earlier --since", spelling.Moment(p.Since))
	}
	return report, err
}
