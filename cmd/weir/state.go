package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	redisconn "github.com/weir-stream/weir/cmd/weir/connect/redis"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/inspect"
	"github.com/weir-stream/weir/operate/refill"
)

func newStateCommand() *cobra.Command {
	var (
		out   output
		names []string
	)
	cmd := &cobra.Command{
		Use:   "state KEY=VALUE...",
		Short: "Show the stored state of an entity",
		Long: `Show what the store holds of the entities that the given keys make: shard, key, bytes
and, of Redis, time to live, and for each series its tiles, values or events, with the
features that use it. It writes nothing.`,
		Example: `  weir state --config config/weir.yaml user_id=u000001
  weir state --config config/weir.yaml user_id=u000001 device_id=d000001 --feature user_device_tx_30d --json`,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given, err := parseKeys(args)
		if err != nil {
			return err
		}
		return withState(s, cmd, openStore, func(cfg *config.Config, registry *features.Registry, state connect.Store) error {
			if _, err := secretIn(cmd.Context(), cfg, state); err != nil {
				return err
			}
			keys, err := inspect.Read(cmd.Context(), state, registry, given, names)
			if err != nil {
				return err
			}
			return out.print(cmd, keys)
		})
	}
	out.flag(cmd)
	cmd.Flags().StringSliceVar(&names, "feature", nil, "only the state of these features")
	cmd.AddCommand(newStateDropCommand())
	return cmd
}

func newStateDropCommand() *cobra.Command {
	var (
		asJSON, refilling bool
		scope             inspect.Scope
	)
	cmd := &cobra.Command{
		Use:   "drop KEY=VALUE...",
		Short: "Drop the damaged state of an entity, and keep or refill the rest",
		Long: `Drop the unreadable state of the entities that the given keys make, and keep the
rest. Features that lack events from then on answer INCOMPLETE, with the events
since complete_since, until their window has passed; those over a lifetime stay
INCOMPLETE for the entity.

With --refill the dropped state, and what was dropped before, is read again from
Kafka, each event once: the features are complete again, as far back as the topics go.
The definitions must be those of the processors. If the command is killed, features
stay INCOMPLETE until it is run again. Processors may run meanwhile.`,
		Example: `  weir state drop --config config/weir.yaml user_id=u000001 --dry-run
  weir state drop --config config/weir.yaml user_id=u000001 --refill`,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if scope.Keys, err = parseKeys(args); err != nil {
			return err
		}
		drop := func(cfg *config.Config, registry *features.Registry, state *redisconn.Deployment) error {
			if _, err := secretIn(cmd.Context(), cfg, state); err != nil {
				return err
			}
			dropped, err := inspect.Drop(cmd.Context(), state.Store(), registry, scope)
			switch { // also after an error: other keys are dropped
			case err != nil && len(dropped) == 0:
				return err
			case asJSON:
				return errors.Join(json.NewEncoder(cmd.OutOrStdout()).Encode(map[string]any{"dropped": dropped, "dry_run": scope.DryRun}), err)
			}
			return errors.Join(writeText(cmd.OutOrStdout(), func(b *strings.Builder) { inspect.WriteDropped(b, dropped, scope) }), err)
		}
		if !refilling {
			return withState(s, cmd, openRedis, drop)
		}
		return withKeptState(s, cmd, openRedis, func(cfg *config.Config, registry *features.Registry, state *redisconn.Deployment) error {
			log, closeLog, err := connect.Log(cfg)
			if err != nil {
				return err
			}
			defer closeLog()
			scope.Refill = &refill.Config{Config: log, MaxRecordBytes: int(cfg.Kafka.MaxRecordBytes), Screen: cmd.ErrOrStderr()}
			return drop(cfg, registry, state)
		})
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&scope.DryRun, "dry-run", false, "report what would be dropped and since when features would be complete; write nothing")
	cmd.Flags().BoolVar(&scope.All, "all", false, "also drop what can be read")
	cmd.Flags().BoolVar(&refilling, "refill", false, "read the dropped state again from Kafka, including what was dropped before")
	cmd.Flags().StringSliceVar(&scope.Features, "feature", nil, "only keys with state of these features, whatever else is in them")
	return cmd
}

// parseKeys reads the keys of an entity.
func parseKeys(args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, errors.New("name an entity by its keys, such as user_id=u000001")
	}
	given := map[string]string{}
	for _, arg := range args {
		key, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not a key with a value, such as user_id=u000001", arg)
		}
		if _, twice := given[key]; twice {
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		given[key] = value
	}
	return given, nil
}
