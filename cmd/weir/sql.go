package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/inspect"
)

func newSQLCommand() *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "sql QUERY [VALUE...]",
		Short: "Ask in SQL for the stored state of an entity",
		Long: `Ask in SQL for the stored state of one entity in one feature, as a table with a row
for each tile, for each value and tile, or for each event. It writes nothing. A
question mark stands for the next of the values. The state is that of now: what it
lacks is in the answers of weir query.

A query is SELECT columns, count(*), count(column), count(DISTINCT column),
sum(column), min(column) or max(column) FROM feature WHERE column = 'text' AND …
GROUP BY columns, with the comparisons = <> < <= > >=. WHERE must name the entity.`,
		Example: `  weir sql --config config/weir.yaml "SELECT * FROM user_amount_1d WHERE user_id = 'u000001'"
  weir sql --config config/weir.yaml 'SELECT count(DISTINCT value) FROM device_users_30d
      WHERE device_id = ? AND timestamp > ?' d000001 2026-01-01T00:00:00Z`,
		Args: cobra.MinimumNArgs(1),
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return withState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, state connect.Store) error {
			if _, err := secretIn(cmd.Context(), cfg, state); err != nil {
				return err
			}
			selected, err := inspect.Select(cmd.Context(), state, registry, args[0], args[1:])
			if err != nil {
				return err
			}
			return out.print(cmd, selected)
		})
	}
	out.flag(cmd)
	return cmd
}
