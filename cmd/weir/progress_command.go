package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/lag"
	"github.com/weir-stream/weir/operate/place"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

func newProgressCommand() *cobra.Command {
	var (
		out  output
		most int64
	)
	cmd := &cobra.Command{
		Use:   "progress",
		Short: "Show how far each partition is applied",
		Long: `Show for each partition what its log holds, how far the shards of the state have
applied it, what is committed to Kafka, and the lag: the offsets that some shard
has still to apply. Below that, it shows how far new features are filled and
how long that will take, for which it reads twice, two seconds apart. It writes nothing.`,
		Example: `  weir progress --config config/weir.yaml
  weir progress --config config/weir.yaml --max-lag 10000 > /dev/null || echo "too far behind"`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.AddCommand(newProgressSetCommand(s))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return withState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, state connect.Store) error {
			client, err := connect.KafkaClient(cfg)
			if err != nil {
				return err
			}
			monitor := lag.Monitor{Client: client, Isolation: connect.Isolation(cfg), Group: cfg.Kafka.Group, Store: state}
			partitions, err := monitor.Read(cmd.Context(), registry.Topics())
			if err != nil {
				return err
			}
			fills, err := readFills(cmd.Context(), state, registry)
			if err != nil {
				return err
			}
			if err := out.print(cmd, lag.Report{Partitions: partitions, Fills: fills}); err != nil {
				return err
			}
			if n := lag.Unknown(partitions); n > 0 {
				return fmt.Errorf("the lag of %d of %s is unknown, since their leaders do not answer", n, spelling.Counted(len(partitions), "partition"))
			}
			if most < 0 {
				return nil
			}
			switch n, lost := lag.Total(partitions); {
			case lost > 0:
				return fmt.Errorf("%d offsets are lost: they were removed from the log before they were applied", lost)
			case n > most:
				return fmt.Errorf("a lag of %d is beyond --max-lag %d", n, most)
			}
			return nil
		})
	}
	out.flag(cmd)
	cmd.Flags().Int64Var(&most, "max-lag", -1, "fail if the lag of all partitions together is greater, or if records are lost; -1 never fails")
	return cmd
}

// speedOver is how long the speed of backfills is measured.
const speedOver = 2 * time.Second

// readFills reads how far new features are filled. If any is being filled, it reads twice to measure the speed.
func readFills(ctx context.Context, s store.Store, registry *features.Registry) ([]lag.Fill, error) {
	began := time.Now()
	history, err := s.History(ctx)
	if err != nil {
		return nil, err
	}
	before := lag.Fills(history, registry.FilledBy)
	if !lag.Filling(before) {
		return before, nil
	}
	if !retry.Wait(ctx, speedOver) {
		return nil, ctx.Err()
	}
	took := time.Since(began)
	if history, err = s.History(ctx); err != nil {
		return nil, err
	}
	fills := lag.Fills(history, registry.FilledBy)
	lag.SetTimeLeft(fills, before, took)
	return fills, nil
}

func newProgressSetCommand(s *settings) *cobra.Command {
	var (
		to         string
		again, yes bool
	)
	cmd := &cobra.Command{
		Use:   "set TOPIC[/PARTITION]... --to start|end|OFFSET",
		Short: "Choose the offset from which a topic or a partition is applied",
		Long: `Show what it would mean to continue a partition, or all partitions of a topic, from an
offset of the present log; with --yes, do it. That lets a partition continue that was
stopped because its topic was created again, the brokers belong to another cluster, or
records were removed before they were applied. Running processors notice by themselves.

Shards of the state that are further ahead in the same log stay where they are, so
nothing is applied twice. --again moves them back too: what they have applied counts twice.
Shards that have lost all of their progress are emptied first, because it is unknown what
their state has counted.`,
		Example: `  weir progress set transactions --to start
  weir progress set transactions --to start --yes
  weir progress set transactions/3 --to 120000 --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := place.ParseTarget(to)
			if err != nil {
				return fmt.Errorf("--to: %w", err)
			}
			return withKeptState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, state connect.Store) error {
				client, err := connect.KafkaClient(cfg)
				if err != nil {
					return err
				}
				partitions, err := namedPartitions(cmd.Context(), client, registry, args)
				if err != nil {
					return err
				}
				poller := fetch.NewPoller(fetch.PollerConfig{Transport: client.Transport, Bootstrap: client.Addr, Isolation: connect.Isolation(cfg)})
				defer poller.Close()
				placer := place.Placer{Store: state, Brokers: poller, Version: registry.Plan().Version, Again: again, Now: time.Now()}
				steps, err := placer.Steps(cmd.Context(), partitions, target)
				if err != nil {
					return err
				}
				placed, err := takeSteps(cmd, state, steps, yes)
				if err != nil || !placed {
					return err
				}
				return printReplicas(cmd, state)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "where to: start or end of the log, or the offset of the next record to apply")
	flags.BoolVar(&again, "again", false, "also move back shards that are further ahead: what they have applied counts twice")
	flags.BoolVar(&yes, "yes", false, "do it, rather than show what it would mean")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// takeSteps prints the meaning of the steps, and carries them out if requested. It reports whether it did.
func takeSteps(cmd *cobra.Command, progress store.Progress, steps []place.Step, yes bool) (placed bool, err error) {
	out := cmd.OutOrStdout()
	if err := writeText(out, func(b *strings.Builder) { place.WriteText(b, steps) }); err != nil {
		return false, err
	}
	ending := "done"
	switch {
	case !slices.ContainsFunc(steps, func(s place.Step) bool { return s.Changes() }):
		ending = "nothing changes"
	case !yes:
		ending = "nothing was changed: repeat with --yes to do it"
	default:
		if err := place.Apply(cmd.Context(), progress, steps); err != nil {
			return false, err
		}
		placed = true
	}
	_, err = fmt.Fprintln(out, ending)
	return placed, err
}

// replicasWithin is how long replicas may take to receive a placement.
const replicasWithin = 3 * time.Second

// printReplicas returns an error if a replica lacks the placement. Processors need no such check,
// because they write again after a failover; an operator's placement would be lost.
func printReplicas(cmd *cobra.Command, s connect.Store) error {
	found, err := s.AwaitReplicas(cmd.Context(), replicasWithin)
	if err != nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "it is unknown whether %s' replicas have it: %v\n", s.Name(), err)
		return err
	}
	for _, c := range found {
		if c.Behind > 0 {
			return fmt.Errorf("it is done, but %d of %d replicas of the %s master %s lacked it after %v: if one of them takes over now, "+
				"the partitions are where they were before: look with weir progress, and run this again if they are", c.Behind, c.Replicas, s.Name(), c.Master, replicasWithin)
		}
	}
	return nil
}

// namedPartitions returns the partitions that arguments such as topic and topic/3 name.
func namedPartitions(ctx context.Context, client *kafka.Client, r *features.Registry, args []string) (named []state.Partition, err error) {
	var topics []string
	for _, arg := range args {
		topic, _, _ := strings.Cut(arg, "/")
		if !slices.Contains(r.Topics(), topic) {
			return nil, fmt.Errorf("%s: no stream reads the topic %q, only %s", arg, topic, strings.Join(r.Topics(), ", "))
		}
		topics = append(topics, topic)
	}
	found, err := connect.FindTopics(ctx, client, topics)
	if err != nil {
		return nil, err
	}
	for i, arg := range args {
		_, number, one := strings.Cut(arg, "/")
		n := connect.PartitionsOf(found, topics[i])
		first, last := 0, n-1
		if one {
			id, err := strconv.Atoi(number)
			if err != nil || id < 0 || id >= n {
				return nil, fmt.Errorf("%s: the topic has the partitions 0 to %d", arg, n-1)
			}
			first, last = id, id
		}
		for id := first; id <= last; id++ {
			if p := (state.Partition{Topic: topics[i], ID: int32(id)}); !slices.Contains(named, p) {
				named = append(named, p)
			}
		}
	}
	return named, nil
}
