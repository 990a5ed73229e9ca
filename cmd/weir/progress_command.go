package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/operate/lag"
	redisstore "github.com/weir-stream/weir/store/redis"
)

func newProgressCommand() *cobra.Command {
	var (
		asJSON bool
		most   int64
	)
	cmd := &cobra.Command{
		Use:   "progress",
		Short: "Say how far each partition is applied",
		Long: `Say for each partition what its log holds, how far the shards of the state have
applied it, what is committed to Kafka, and the lag: the offsets that some shard
has still to apply. Below it stands what new features have still to be filled with.
It reads only.`,
		Example: `  weir progress --config config/weir.yaml
  weir progress --config config/weir.yaml --max-lag 10000 > /dev/null || echo "too far behind"`,
		Args: cobra.NoArgs,
	}
	s := addSettings(cmd)
	cmd.AddCommand(newProgressSetCommand(s))
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		return s.withState(cmd, func(cfg *config.Config, registry *features.Registry, state *redisstore.Store) error {
			client, err := connect.KafkaClient(cfg)
			if err != nil {
				return err
			}
			reader := lag.Reader{Client: client, Isolation: connect.Isolation(cfg), Group: cfg.Kafka.Group, Store: state}
			partitions, err := reader.Read(cmd.Context(), registry.Topics())
			if err != nil {
				return err
			}
			history, err := state.History(cmd.Context())
			if err != nil {
				return err
			}
			write := lag.WriteText
			if asJSON {
				write = lag.WriteJSON
			}
			if err := write(cmd.OutOrStdout(), partitions, lag.Fills(history, registry.FilledBy)); err != nil || most < 0 {
				return err
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
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().Int64Var(&most, "max-lag", -1, "fail if the lag of all partitions together is greater, or if records are lost; -1 never fails")
	return cmd
}
