package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/features/definition"
)

func newExplainCommand() *cobra.Command {
	var (
		out  output
		load string
	)
	cmd := &cobra.Command{
		Use:   "explain PATH...",
		Short: "Report what definitions cost",
		Long: `Report what every event writes, what every question reads, what an entity takes in
Redis, and which features share their state.

With --load it reports what a workload needs of Redis, topics and processors. A load has
events a second, of all streams or of one (transaction=60k/s); entities that are alive at
the same time, all or those of one kind (user_id=20M, device_id+user_id=50M); optionally
questions=5k/s, and memory=64GiB of a Redis master's machine.`,
		Example: `  weir explain config/features
  weir explain config/features --load events=100k/s,entities=100M,questions=5k/s`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			registry, err := definition.Load(paths...)
			if err != nil {
				return err
			}
			var r report = cost.Explain(registry)
			if cmd.Flags().Changed("load") {
				workload, err := cost.ParseWorkload(registry, load)
				if err != nil {
					return fmt.Errorf("--load: %w", err)
				}
				r = cost.Size(registry, workload)
			}
			return out.print(cmd, r)
		},
	}
	out.flag(cmd)
	cmd.Flags().StringVar(&load, "load", "", "report what this workload needs, such as events=100k/s,entities=100M")
	return cmd
}
