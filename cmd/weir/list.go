package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/user"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/window"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/pipeline/follow"
)

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Change and show lists, such as blocked cards",
		Long: `Change the entries of a list in its topic, with who wrote each, when and why, and
show them. All processes that answer have read a change within a second.`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.AddCommand(newListAddCommand(s), newListRemoveCommand(s), newListShowCommand(s))
	return cmd
}

// listTimeout bounds how long a change of a list waits for Kafka.
const listTimeout = 30 * time.Second

// listChange is a change of entries of a list.
type listChange struct{ until, who, why string }

func (c *listChange) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&c.why, "why", "", "the reason, such as a case")
	cmd.Flags().StringVar(&c.who, "who", "", "who changes the list (default the user who runs the command)")
}

func newListAddCommand(s *settings) *cobra.Command {
	var c listChange
	cmd := &cobra.Command{
		Use:     "add LIST VALUE...",
		Short:   "Add values to a list",
		Long:    "Add values to a list. One that is in it gets the new reason and end.",
		Example: `  weir list add blocked_cards c000017 --until 2026-12-31 --why "case 17" --config config/weir.yaml`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			until, err := parseUntil(c.until, time.Now())
			if err != nil {
				return err
			}
			return c.write(s, cmd, args, until, false)
		},
	}
	c.flags(cmd)
	cmd.Flags().StringVar(&c.until, "until", "", "when the values leave the list: RFC 3339, a day, whose end in UTC it is, or for how long, such as 30d (default never)")
	return cmd
}

func newListRemoveCommand(s *settings) *cobra.Command {
	var c listChange
	cmd := &cobra.Command{
		Use:     "remove LIST VALUE...",
		Short:   "Remove values from a list",
		Long:    "Remove values from a list. The topic keeps who did it, when and why.",
		Example: `  weir list remove blocked_cards c000017 --why "case 17 closed" --config config/weir.yaml`,
		Args:    cobra.MinimumNArgs(2),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.write(s, cmd, args, nil, true) },
	}
	c.flags(cmd)
	return cmd
}

// write writes entries to the topic of a list.
func (c *listChange) write(s *settings, cmd *cobra.Command, args []string, until *time.Time, remove bool) error {
	cfg, list, err := s.listNamed(cmd, args[0])
	if err != nil {
		return err
	}
	if c.who == "" {
		by, err := user.Current()
		if err != nil {
			return fmt.Errorf("--who: nobody is known to run this: %w", err)
		}
		c.who = by.Username
	}
	var messages []kafka.Message
	for _, v := range args[1:] {
		key, content, err := lists.Record(list, lists.Entry{Value: v, Until: until, Who: c.who, Why: c.why}, remove)
		if err != nil {
			return err
		}
		messages = append(messages, kafka.Message{Key: key, Value: content})
	}
	transport, err := cfg.KafkaTransport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	w := &kafka.Writer{
		Addr: kafka.TCP(cfg.Kafka.Brokers...), Transport: transport, Topic: list.Rows.Topic, RequiredAcks: kafka.RequireAll,
		Balancer: kafka.Murmur2Balancer{}, BatchTimeout: time.Millisecond, // all changes of a value go to one partition
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
	defer cancel()
	if err := errors.Join(w.WriteMessages(ctx, messages...), w.Close()); err != nil {
		return fmt.Errorf("write to topic %s: %w", list.Rows.Topic, err)
	}
	verb := "added to"
	if remove {
		verb = "removed from"
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s %s %s\n", say.Number(len(messages), "value"), verb, list.Name)
	return err
}

// parseUntil reads when an entry ends; nil for never.
func parseUntil(text string, now time.Time) (*time.Time, error) {
	if text == "" {
		return nil, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		if at, err = time.Parse(time.DateOnly, text); err == nil {
			at = at.AddDate(0, 0, 1)
		}
	}
	if err != nil {
		var d time.Duration
		if d, err = window.ParseDuration(text); err == nil {
			at = now.Add(d)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("--until: %q is neither a moment such as 2026-12-31T23:59:59Z, nor a day such as 2026-12-31, nor a time such as 30d", text)
	case !at.After(now):
		return nil, fmt.Errorf("--until: %s has passed", text)
	}
	at = at.UTC().Truncate(time.Millisecond)
	return &at, nil
}

func newListShowCommand(s *settings) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show LIST [VALUE...]",
		Short: "Show the values of a list, with who added each, when and why",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, list, err := s.listNamed(cmd, args[0])
			if err != nil {
				return err
			}
			log, done, err := connect.Log(cfg)
			if err != nil {
				return err
			}
			defer done()
			contents, bad, err := follow.Read(cmd.Context(), log, list)
			if err != nil {
				return err
			}
			if bad != nil {
				fmt.Fprintf(cmd.ErrOrStderr(), "some records cannot be read, the first: %v\n", bad)
			}
			entries := lists.Entries(contents, list, time.Now(), args[1:])
			if asJSON {
				return json.NewEncoder(cmd.OutOrStdout()).Encode(append([]lists.Entry{}, entries...))
			}
			return lists.WriteText(cmd.OutOrStdout(), entries)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as a list of objects")
	return cmd
}

// listNamed finds a list of the definitions.
func (s *settings) listNamed(cmd *cobra.Command, name string) (*config.Config, *features.Table, error) {
	cfg, registry, err := s.loadAll(cmd)
	if err != nil {
		return nil, nil, err
	}
	var known []string
	for _, t := range registry.Tables {
		if t.List && t.Name == name {
			return cfg, t, nil
		}
		if t.List {
			known = append(known, t.Name)
		}
	}
	if known == nil {
		return nil, nil, errors.New("the definitions have no lists")
	}
	return nil, nil, errors.New(spelling.Unknown("list", name, known))
}
