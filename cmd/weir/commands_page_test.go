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

// generatedCommands marks the part of docs/cli.md that is generated from the commands.
const generatedCommands = "<!-- Below: go test ./cmd/weir -run CommandsPage -update -->\n"

// docs/cli.md has the synopsis and the flags of each command.
func TestCommandsPageIsCurrent(t *testing.T) {
	const file = "../../docs/cli.md"
	page := read(t, file)
	head, _, found := strings.Cut(page, generatedCommands)
	if !found {
		t.Fatalf("%s has no line %q", file, generatedCommands)
	}
	var b strings.Builder
	b.WriteString(head + generatedCommands)
	documentCommands(&b, newRootCommand())
	want := b.String()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		page = want
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(page, "\n")); diff != "" {
		t.Errorf("docs/cli.md (-want +got), rewritten by go test -update:\n%s", diff)
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

var markdown = strings.NewReplacer("*", `\*`, "_", `\_`, "<", `\<`)

// documentCommand writes one section, without what the head of the page says of all commands: --help, and the flags of those
// that take settings. The long text and the examples are in the command's help.
func documentCommand(b *strings.Builder, cmd *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s.\n\n```text\n%s\n", cmd.CommandPath(), markdown.Replace(cmd.Short), cmd.UseLine())
	own, settings := pflag.NewFlagSet("", pflag.ContinueOnError), false
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		settings = settings || config.IsSetting(f)
		if !config.IsSetting(f) && f.Name != "help" && !(f.Name == "config" && strings.HasSuffix(f.Usage, "see config/weir.yaml")) {
			own.AddFlag(f)
		}
	})
	if flags := strings.TrimRight(own.FlagUsages(), " \n"); flags != "" {
		fmt.Fprintf(b, "\n%s\n", flags)
	}
	b.WriteString("```\n")
	if settings || usages(cmd.InheritedFlags(), true) != "" {
		b.WriteString("\nTakes [settings](settings.md).\n")
	}
}
