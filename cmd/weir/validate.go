package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features"
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
			_, err = fmt.Fprintln(cmd.OutOrStdout(), "all is well:", summary(registry))
			return err
		},
	}
}

// summary says how much a registry holds.
func summary(r *features.Registry) string {
	return fmt.Sprintf("%s of %s in %s, %s", number(len(r.Features), "feature"), number(len(r.Streams), "stream"),
		number(len(r.Series), "state series"), number(len(r.Services), "service"))
}

// number is a count with its noun, which is the same for all numbers if it
// ends in s.
func number(n int, noun string) string {
	if n != 1 && noun[len(noun)-1] != 's' {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
