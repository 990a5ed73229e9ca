package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features"
)

func newExplainCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "explain PATH...",
		Short: "Say what feature definitions cost",
		Long: `Say what every event writes, what every question reads, what an entity takes in
Redis, and which features share their state.`,
		Example: "  weir explain config/features",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			registry, err := features.Load(paths...)
			if err != nil {
				return err
			}
			plan := registry.Explain()
			if !asJSON {
				return plan.WriteText(cmd.OutOrStdout())
			}
			out := json.NewEncoder(cmd.OutOrStdout())
			out.SetIndent("", "  ")
			return out.Encode(plan)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}
