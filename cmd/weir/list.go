package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/operate/lists"
	"github.com/weir-stream/weir/tables"
)

func newListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "Change and show lists, such as blocked cards",
		Long: `Change the entries of a list in its topic, with who wrote each, when and why, and
show them. All processes that answer have read a change within a second.`,
		RunE: unknownCommand,
	}
	s := addSettings(cmd)
	cmd.AddCommand(newListAddCommand(s), newListRemoveCommand(s), newListShowCommand(s))
	return cmd
}

// listTimeout bounds how long a change of a list waits for Kafka, and listReadTimeout how long a removal reads the list
// before.
const listTimeout, listReadTimeout = 30 * time.Second, 5 * time.Second

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
			until, err := lists.ParseUntil(c.until, time.Now())
			if err != nil {
				return fmt.Errorf("--%w", err)
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
	var changes []lists.Written
	given := map[string]bool{}
	for _, v := range args[1:] {
		w, err := lists.Record(list, lists.Entry{Value: v, Until: until, Who: c.who, Why: c.why}, remove)
		if err != nil {
			return err
		}
		if !given[w.Value] {
			given[w.Value], changes = true, append(changes, w)
		}
	}
	client, err := connect.KafkaClient(cfg)
	if err != nil {
		return err
	}
	var absent []string
	if remove {
		absent = absentFrom(cmd.Context(), cfg, list, changes)
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), listTimeout)
	defer cancel()
	if err := lists.Write(ctx, client, list, changes); err != nil {
		return err
	}
	said := spelling.Counted(len(changes), "value") + " added to " + list.Name
	if remove {
		said = spelling.Counted(len(changes)-len(absent), "value") + " not in " + list.Name + " any more"
	}
	if len(absent) > 0 {
		said += "; not in it before: " + strings.Join(absent, ", ")
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
	return err
}

// absentFrom returns the values that a list does not have. It returns none if the list cannot be read: whoever removes
// values need not have the right to read them.
func absentFrom(ctx context.Context, cfg *config.Config, list *features.Table, changes []lists.Written) (values []string) {
	ctx, cancel := context.WithTimeout(ctx, listReadTimeout)
	defer cancel()
	contents, err := readTable(ctx, cfg, list, tables.Newest, io.Discard)
	if err != nil {
		return nil
	}
	there := map[string]bool{}
	for _, e := range lists.Entries(contents, list, time.Now(), nil) {
		there[e.Value] = true
	}
	for _, c := range changes {
		if !there[c.Value] {
			values = append(values, spelling.Visible(c.Value))
		}
	}
	return values
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
			contents, err := readTable(cmd.Context(), cfg, list, tables.Newest, cmd.ErrOrStderr())
			if err != nil {
				return err
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
