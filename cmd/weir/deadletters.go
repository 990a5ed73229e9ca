package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/deadletter"
)

func newDeadLettersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:                   "deadletters list|show|replay",
		DisableFlagsInUseLine: true,
		Short:                 "Look at events that could not be used, and replay them",
		RunE:                  unknownCommand,
	}
	s := addSettings(cmd)
	cmd.AddCommand(newDeadLettersListCommand(s), newDeadLettersShowCommand(s), newDeadLettersReplayCommand(s))
	return cmd
}

// unknownCommand is a command that only has others. Without it cobra prints the help for a misspelt one, and succeeds.
func unknownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var known []string
	for _, c := range cmd.Commands() {
		known = append(known, c.Name())
	}
	return errors.New(spelling.UnknownIn(" of "+cmd.CommandPath(), "command", args[0], known))
}

// letterFilter are the flags that pick dead letters.
type letterFilter struct {
	deadletter.Filter
	since, until string
}

func (f *letterFilter) flags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Reasons, "reason", nil, "only letters of these reasons")
	flags.StringSliceVar(&f.Streams, "stream", nil, "only letters of these streams")
	flags.StringSliceVar(&f.Topics, "topic", nil, "only events of these topics")
	flags.StringVar(&f.since, "since", "", "only letters set aside from then on: RFC 3339, or how long ago, such as 24h")
	flags.StringVar(&f.until, "until", "", "only letters set aside before: RFC 3339, or how long ago")
}

// parse reads the flags and the record IDs given as arguments.
func (f *letterFilter) parse(ids []string, now time.Time) (err error) {
	if f.Since, err = parseMoment("--since", f.since, now); err != nil {
		return err
	}
	if f.Until, err = parseMoment("--until", f.until, now); err != nil {
		return err
	}
	for _, text := range ids {
		id, err := deadletter.ParseRecordID(text)
		if err != nil {
			return err
		}
		f.IDs = append(f.IDs, id)
	}
	return f.Check()
}

// leastMoment is the least moment in ms that is believed, in 1973: a lesser number is a time without a unit, such as 24, or
// a moment in seconds.
const leastMoment = 100_000_000_000

// parseMoment reads a moment, RFC 3339 or in ms, or how long before now it was; zero for no text.
func parseMoment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := window.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil && ms >= leastMoment {
		return time.UnixMilli(ms), nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return t, fmt.Errorf("%s: %q is neither a moment such as 2026-01-31T23:59:59Z nor a time ago such as 24h", flag, text)
	}
	return t, nil
}

// deadLetterTopic returns the topic that the settings name.
func (s *settings) deadLetterTopic(cmd *cobra.Command) (*deadletter.Topic, error) {
	cfg, err := s.load(cmd)
	if err != nil {
		return nil, err
	}
	return openDeadLetters(cmd.Context(), cfg)
}

// openDeadLetters returns the topic of settings, with the seal of their namespace.
func openDeadLetters(ctx context.Context, cfg *config.Config) (*deadletter.Topic, error) {
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return nil, err
	}
	topic := &deadletter.Topic{Client: client, Name: cfg.Kafka.DeadLetterTopic, Namespace: cfg.Namespace}
	store, err := adopted(ctx, cfg, openStore)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	topic.Seal, err = store.Seal(ctx)
	return topic, err
}

func newDeadLettersListCommand(s *settings) *cobra.Command {
	var (
		filter letterFilter
		out    output
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List dead letters, and count them by reason",
		Example: `  weir deadletters list --config config/weir.yaml --since 24h
  weir deadletters list --config config/weir.yaml --reason wrong_type,missing_field --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := filter.parse(nil, time.Now()); err != nil {
				return err
			}
			topic, err := s.deadLetterTopic(cmd)
			if err != nil {
				return err
			}
			letters, err := deadletter.List(cmd.Context(), topic, &filter.Filter)
			if err != nil {
				return err
			}
			return out.print(cmd, deadletter.Letters(letters))
		},
	}
	filter.flags(cmd.Flags())
	out.flag(cmd)
	return cmd
}

func newDeadLettersShowCommand(s *settings) *cobra.Command {
	var (
		out output
		raw bool
	)
	cmd := &cobra.Command{
		Use:   "show TOPIC/PARTITION/OFFSET",
		Short: "Show a dead letter with the original record",
		Long: `Show a dead letter with the original record, by its own position or by that of the
event. What cannot be printed is shown in hexadecimal.`,
		Example: `  weir deadletters show --config config/weir.yaml transactions/3/1040
  weir deadletters show --config config/weir.yaml weir.dead-letters/0/12 --value > event`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := deadletter.ParseRecordID(args[0])
			if err != nil {
				return err
			}
			topic, err := s.deadLetterTopic(cmd)
			if err != nil {
				return err
			}
			letters, err := deadletter.Find(cmd.Context(), topic, id)
			if err != nil {
				return err
			}
			if len(letters) == 0 {
				return fmt.Errorf("topic %s has no dead letter at or of %s", topic.Name, id)
			}
			letter := letters[len(letters)-1]
			if raw {
				_, err = cmd.OutOrStdout().Write(letter.Value)
				return err
			}
			return out.print(cmd, letter)
		},
	}
	out.flag(cmd)
	cmd.Flags().BoolVar(&raw, "value", false, "print the bytes of the original value and nothing else")
	cmd.MarkFlagsMutuallyExclusive("json", "value")
	return cmd
}

func newDeadLettersReplayCommand(s *settings) *cobra.Command {
	var (
		filter letterFilter
		dry    bool
	)
	replay := &deadletter.Replay{}
	cmd := &cobra.Command{
		Use:   "replay [TOPIC/PARTITION/OFFSET...]",
		Short: "Put the original records of dead letters back on their topics",
		Long: `Put the original records of dead letters back on the topics and partitions they
came from, with their keys, values, headers and times. Arguments name positions, of
letters or of events; without any, all that the flags select are replayed. Correct
the cause first: a record that still cannot be used becomes a dead letter again,
with the header weir-replays.

Each event is replayed once, however often this is run or interrupted, and counts once
in each feature. Features that a backfill has filled from the original record, or will
fill, do not count it again: the state says which these are, so the settings must name
the namespace and its Redis. Events with the reason late are skipped: the features for
which they were not too late have counted them.`,
		Example: `  weir deadletters replay --config config/weir.yaml --reason wrong_type --since 24h --dry-run
  weir deadletters replay --config config/weir.yaml transactions/3/1040`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if replay.MaxLetters < 1 {
				return fmt.Errorf("--batch %d: at least 1", replay.MaxLetters)
			}
			if err := filter.parse(args, time.Now()); err != nil {
				return err
			}
			cfg, err := s.load(cmd)
			if err != nil {
				return err
			}
			if cfg.Kafka.Isolation != "read_committed" {
				return fmt.Errorf("kafka.isolation is %s: processors would count what an interrupted replay has rolled back; set read_committed",
					cfg.Kafka.Isolation)
			}
			topic, err := openDeadLetters(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			store, err := adopted(cmd.Context(), cfg, openStore)
			if err != nil {
				return err
			}
			defer func() { _ = store.Close() }()
			replay.Filter, replay.Topic, replay.State = filter.Filter, topic, store
			if replay.Producer, err = cfg.KafkaProducer(); err != nil {
				return err
			}
			if dry {
				summary, err := replay.Preview(cmd.Context())
				if err != nil {
					return err
				}
				return writeText(cmd.OutOrStdout(), func(b *strings.Builder) { summary.WriteText(b, true) })
			}
			summary, err := replay.Run(cmd.Context())
			if summary.Replayed != nil {
				_ = writeText(cmd.OutOrStdout(), func(b *strings.Builder) { summary.WriteText(b, false) })
			}
			return err
		},
	}
	filter.flags(cmd.Flags())
	cmd.Flags().BoolVar(&dry, "dry-run", false, "report what would be replayed, and write nothing")
	cmd.Flags().BoolVar(&replay.StampNow, "stamp-now", false,
		"give the records the present time: then events from the future of their records, and those older than the topic's retention, can be used")
	cmd.Flags().IntVar(&replay.MaxLetters, "batch", 500, "events of one transaction")
	return cmd
}
