package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/operate/inspect"
)

func newStateCommand() *cobra.Command {
	var (
		asJSON bool
		names  []string
	)
	cmd := &cobra.Command{
		Use:   "state KEY=VALUE...",
		Short: "Show what is kept of an entity, as it stands",
		Long: `Show what Redis holds of the entities that the given keys make, as it stands:
shard, key, bytes and time to live, and of each series its tiles, values or
events, with the features that use it. It reads only.`,
		Example: `  weir state --config config/weir.yaml user_id=u000001
  weir state --config config/weir.yaml user_id=u000001 device_id=d000001 --feature user_device_tx_30d --json`,
	}
	s := addSettings(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		given, err := parseKeys(args)
		if err != nil {
			return err
		}
		cfg, registry, err := s.loadAll(cmd)
		if err != nil {
			return err
		}
		state, closeState, err := openState(cmd.Context(), cfg)
		if err != nil {
			return err
		}
		defer func() { _ = closeState() }()
		keys, err := inspect.Read(cmd.Context(), state, registry, given, names)
		if err != nil {
			return err
		}
		if asJSON {
			return inspect.WriteJSON(cmd.OutOrStdout(), keys)
		}
		return inspect.WriteText(cmd.OutOrStdout(), keys)
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().StringSliceVar(&names, "feature", nil, "only the state of these features")
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
			return nil, fmt.Errorf("%q is no key with a value, such as user_id=u000001", arg)
		}
		if _, twice := given[key]; twice {
			return nil, fmt.Errorf("key %q is given twice", key)
		}
		given[key] = value
	}
	return given, nil
}
