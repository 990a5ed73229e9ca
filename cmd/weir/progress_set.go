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
	"github.com/weir-stream/weir/operate/place"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	redisstore "github.com/weir-stream/weir/store/redis"
)

func newProgressSetCommand(s *settings) *cobra.Command {
	var (
		to         string
		again, yes bool
	)
	cmd := &cobra.Command{
		Use:   "set TOPIC[/PARTITION]... --to start|end|OFFSET",
		Short: "Place a partition, or all of a topic, in the log there is",
		Long: `Say what it would mean to go on with a partition, or with all partitions of a topic,
from a place in the log there is now; with --yes do it. So a partition goes on that was
stopped: because its topic was made anew, the brokers are another cluster, or records
were removed before they were applied. Processors that run take it up by themselves.

Shards of the state that are further in the same log stay where they are, so nothing is
applied twice; --again moves them back too, and counts twice what they have.`,
		Example: `  weir progress set transactions --to start
  weir progress set transactions --to start --yes
  weir progress set transactions/3 --to 120000 --yes`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := place.ParseTarget(to)
			if err != nil {
				return fmt.Errorf("--to: %w", err)
			}
			return s.withState(cmd, func(cfg *config.Config, registry *features.Registry, state *redisstore.Store) error {
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
				planner := place.Planner{Store: state, Brokers: poller, Version: registry.Plan().Version, Again: again, Now: time.Now()}
				steps, err := planner.Plan(cmd.Context(), partitions, target)
				if err != nil {
					return err
				}
				placed, err := takeSteps(cmd, state, steps, yes)
				if err != nil || !placed {
					return err
				}
				return tellReplicas(cmd, state)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&to, "to", "", "where to: start or end of the log, or the offset of the next record to apply")
	flags.BoolVar(&again, "again", false, "also move shards back that are further: what they have applied counts twice")
	flags.BoolVar(&yes, "yes", false, "do it, rather than say what it would mean")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

// takeSteps says what the steps mean, and takes them if that was asked for. It says
// whether it did.
func takeSteps(cmd *cobra.Command, progress store.Progress, steps []place.Step, yes bool) (placed bool, err error) {
	out := cmd.OutOrStdout()
	if err := place.WriteText(out, steps); err != nil {
		return false, err
	}
	ending := "done"
	switch {
	case !slices.ContainsFunc(steps, func(s place.Step) bool { return s.Changes() }):
		ending = "nothing changes"
	case !yes:
		ending = "nothing was changed; with --yes it is"
	default:
		if err := place.Apply(cmd.Context(), progress, steps); err != nil {
			return false, err
		}
		placed = true
	}
	_, err = fmt.Fprintln(out, ending)
	return placed, err
}

// replicasWithin is how long the replicas of Redis may take to have what was placed.
const replicasWithin = 3 * time.Second

// tellReplicas is an error where a replica lacks what was placed. What processors write
// needs no such care: they write it again. What an operator wants nobody else knows.
func tellReplicas(cmd *cobra.Command, s *redisstore.Store) error {
	found, err := s.AwaitReplicas(cmd.Context(), replicasWithin)
	if err != nil {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "whether Redis' replicas have it is not known: %v\n", err)
		return err
	}
	for _, c := range found {
		if c.Behind > 0 {
			return fmt.Errorf("it is done, but %d of %d replicas of the Redis master %s lacked it after %v: if one of them takes over now, "+
				"the partitions are where they were before: look with weir progress, and run this again if they are", c.Behind, c.Replicas, c.Master, replicasWithin)
		}
	}
	return nil
}

// namedPartitions are those that arguments such as topic and topic/3 name.
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
