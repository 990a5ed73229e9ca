package main

import (
	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/cmd/weir/demo"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Real-time features for fraud and risk decisions",
		Long: `Weir reads event topics from Kafka, keeps features of users, devices, cards and
the like in Redis, and answers questions about them over HTTP.

Try it out with nothing else installed:  weir demo`,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetUsageTemplate(usageTemplate)
	root.AddCommand(
		demo.New(newRootCommand),
		newRunCommand(),
		newQueryCommand(),
		newHealthCommand(),
		newMaterializeCommand(),
		newValidateCommand(),
		newTestCommand(),
		newExplainCommand(),
		newDiffCommand(),
		newSchemaCommand(),
		newGenerateCommand(),
		newDeadLettersCommand(),
		newProgressCommand(),
		newBackfillCommand(),
		newStateCommand(),
		newDoctorCommand(),
		newManCommand(),
		newVersionCommand(),
	)
	return root
}
