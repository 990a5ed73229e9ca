package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/features/definition"
)

func newValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate PATH...",
		Short: "Check feature definitions",
		Long: `Check the feature definitions in files and in the *.yaml of folders, taken
together. Each finding is a line file:line:column: message.`,
		Example: "  weir validate config/features",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			registry, err := definition.Load(paths...)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "all is well:", say.Summary(registry))
			return err
		},
	}
}
