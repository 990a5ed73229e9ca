package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/features/definition"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of definitions, for editors",
		Long: `Print the JSON Schema (draft 2020-12) of a definitions file. With it an editor
completes keys and marks wrong ones; weir validate finds the rest.`,
		Example: "  weir schema > weir.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(definition.Schema())
			return err
		},
	}
}
