package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/spelling"
)

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Real-time features for fraud and risk decisions",
		Long: `Weir reads event topics from Kafka, keeps features of users, devices, cards and
the like in Redis, and answers questions about them over HTTP.` + tryOut,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetUsageTemplate(usageTemplate)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(trying()...)
	root.AddCommand(
		newRunCommand(),
		newQueryCommand(),
		newHealthCommand(),
		newMaterializeCommand(),
		newValidateCommand(),
		newTestCommand(),
		newExplainCommand(),
		newDiffCommand(),
		newPreviewCommand(),
		newSchemaCommand(),
		newGenerateCommand(),
		newDeadLettersCommand(),
		newListCommand(),
		newProgressCommand(),
		newBackfillCommand(),
		newStateCommand(),
		newSQLCommand(),
		newReshardCommand(),
		newDoctorCommand(),
		newManCommand(),
		newVersionCommand(),
	)
	sayUsage(root)
	return root
}

// sayUsage lets a command and those below it say how they are used when their arguments are wrong.
func sayUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err == nil {
				return nil
			}
			usage := "usage: " + cmd.UseLine()
			if cobra.NoArgs(cmd, args) == nil || check(cmd, nil) != nil { // it takes arguments, but others
				return fmt.Errorf("%w; %s", err, usage)
			}
			if cmd.Flags().Lookup("config") != nil {
				usage += "; --config names a file of settings"
			}
			return fmt.Errorf("%s takes no %q; %s", cmd.CommandPath(), args[0], usage)
		}
	}
	for _, below := range cmd.Commands() {
		sayUsage(below)
	}
}

// values describes the values of flags by type.
var values = map[string]string{
	"int": "a whole number", "int64": "a whole number", "uint64": "a whole number of at least 0", "float64": "a number",
	"duration": "a duration such as 30s or 24h", "bool": "true or false",
}

// flagError describes in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		if variable, ok := config.SecretVariable(unknown.GetSpecifiedName()); ok {
			return fmt.Errorf("--%s is not a flag, since others on this machine could read it: set %s, or --%[1]s_file", unknown.GetSpecifiedName(), variable)
		}
		var known []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		return errors.New(spelling.Unknown("flag", "--"+unknown.GetSpecifiedName(), known))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want, ok := values[invalid.GetFlag().Value.Type()]; ok {
			return fmt.Errorf("--%s must be %s; %q is not", invalid.GetFlag().Name, want, invalid.GetValue())
		}
	}
	return err
}

// usageTemplate is cobra's own, except that the settings of weir.yaml are listed after a command's
// own flags.
var usageTemplate = func() string {
	cobra.AddTemplateFunc("ownFlags", func(flags *pflag.FlagSet) string { return usages(flags, false) })
	cobra.AddTemplateFunc("settings", func(flags *pflag.FlagSet) string { return usages(flags, true) })
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	const inherited = "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"
	const grouped = "Flags:\n{{ownFlags .Flags}}{{with settings .Flags}}\n\nSettings of weir.yaml, whose variables in the environment begin with WEIR_:\n{{.}}{{end}}"
	template := strings.Replace(new(cobra.Command).UsageTemplate(), flags, grouped, 1)
	return strings.Replace(template, "{{if .HasAvailableInheritedFlags}}\n\n"+inherited+"{{end}}", "", 1)
}()

// usages returns the usages of the flags that are settings, or of those that are not.
func usages(flags *pflag.FlagSet, settings bool) string {
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if config.IsSetting(f) == settings {
			of.AddFlag(f)
		}
	})
	return strings.TrimRight(of.FlagUsages(), " \n")
}

func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "man FOLDER",
		Short: "Write the manual pages",
		Long: `Write a manual page for each command into a folder, which is created if it does
not exist.`,
		Example: "  weir man /usr/local/share/man/man1",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Title: "WEIR", Section: "1", Source: "weir", Manual: "Weir"}
			// Each build of a release makes the same pages.
			if made, err := time.Parse(time.RFC3339, date); err == nil {
				header.Date = &made
			}
			root := cmd.Root()
			root.DisableAutoGenTag = true
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			return nil
		},
	}
}
