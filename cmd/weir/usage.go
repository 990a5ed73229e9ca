package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/config"
)

// usageTemplate is cobra's own, but for the settings of weir.yaml, which a command that takes them shows behind its own
// flags.
var usageTemplate = func() string {
	cobra.AddTemplateFunc("ownFlags", func(flags *pflag.FlagSet) string { return usages(flags, false) })
	cobra.AddTemplateFunc("settings", func(flags *pflag.FlagSet) string { return usages(flags, true) })
	const flags = "Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}"
	const inherited = "Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}"
	const grouped = "Flags:\n{{ownFlags .Flags}}{{with settings .Flags}}\n\nSettings of weir.yaml, whose variables in the environment begin with WEIR_:\n{{.}}{{end}}"
	template := strings.Replace(new(cobra.Command).UsageTemplate(), flags, grouped, 1)
	return strings.Replace(template, "{{if .HasAvailableInheritedFlags}}\n\n"+inherited+"{{end}}", "", 1)
}()

// usages are those of the flags that are settings, or that are none.
func usages(flags *pflag.FlagSet, settings bool) string {
	of := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if config.IsSetting(f) == settings {
			of.AddFlag(f)
		}
	})
	return strings.TrimRight(of.FlagUsages(), " \n")
}
