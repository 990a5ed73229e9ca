package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weir-stream/weir/config"
)

// docs/commands.txt is the help of each command; docs/cli.md refers to it.
func TestCommandsPageIsCurrent(t *testing.T) {
	t.Parallel()
	const file = "../../docs/commands.txt"
	var b strings.Builder
	documentCommands(&b, newRootCommand())
	want := strings.TrimPrefix(b.String(), "\n")
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(read(t, file), "\n")); diff != "" {
		t.Errorf("docs/commands.txt (-want +got), rewritten by go test -update:\n%s", diff)
	}
}

// documentCommands writes the sections of the commands below one, sorted by name.
func documentCommands(b *strings.Builder, above *cobra.Command) {
	commands := slices.Clone(above.Commands())
	slices.SortFunc(commands, func(x, y *cobra.Command) int { return strings.Compare(x.Name(), y.Name()) })
	for _, cmd := range commands {
		if cmd.Runnable() {
			documentCommand(b, cmd)
		}
		documentCommands(b, cmd)
	}
}

// documentCommand writes the help of one command, without what docs/cli.md says of all: --help, and the flags of those that take
// settings.
func documentCommand(b *strings.Builder, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	fmt.Fprintf(b, "\n%s\n%s\n\n%s\n\nUsage:\n  %s\n", cmd.CommandPath(), strings.Repeat("=", len(cmd.CommandPath())), text, cmd.UseLine())
	own, settings := pflag.NewFlagSet("", pflag.ContinueOnError), false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		settings = settings || config.IsSetting(f)
		if !config.IsSetting(f) && f.Name != "help" && !(f.Name == "config" && strings.HasSuffix(f.Usage, "see config/weir.yaml")) {
			own.AddFlag(f)
		}
	})
	if flags := strings.TrimRight(own.FlagUsages(), " \n"); flags != "" {
		fmt.Fprintf(b, "\nFlags:\n%s\n", flags)
	}
	if settings || usages(cmd.InheritedFlags(), true) != "" {
		b.WriteString("\nTakes settings.\n")
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\nExamples:\n%s\n", cmd.Example)
	}
}
