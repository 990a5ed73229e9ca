package config

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write docs/settings.md")

const settingsHead = `# Settings

Every setting with its default. [config/weir.yaml](https://github.com/weir-stream/weir/blob/main/config/weir.yaml) has the same as a file, to
copy from: your own file needs only what differs. Commands read the file that ` + "`--config` names, or else the one that the variable `WEIR_CONFIG`" + `
names. An environment variable overrides the file (` + "`kafka.tls.ca` is `WEIR_KAFKA_TLS_CA`" + `, lists with commas), and a flag overrides both
(` + "`--kafka.tls.ca=…`" + `); passwords have no flag. Durations are written ` + "`5ms`, `1s`, `2m`; sizes `512KiB`, `1MiB`" + ` or a number of bytes.
` + "`weir run --check`" + ` checks the settings.

This page is generated from that file: ` + "`go test ./config -run SettingsPage -update`" + `.
`

// docs/settings.md lists all settings, a table for each section.
func TestSettingsPageIsCurrent(t *testing.T) {
	const file = "../docs/settings.md"
	d := readDocument("weir.yaml", reference)
	page, section := new(strings.Builder), "none"
	page.WriteString(settingsHead)
	for _, key := range keys {
		of, _, inSection := strings.Cut(key, ".")
		if !inSection {
			of = "The process"
		}
		if of != section {
			section = of
			fmt.Fprintf(page, "\n## %s\n\n| setting | default | is |\n| --- | --- | --- |\n", section)
		}
		given := fmt.Sprint(d.values[key])
		if given != "" {
			given = "`" + given + "`"
		}
		about := strings.Join(strings.Fields(strings.NewReplacer("\n#", " ", "|", "\\|").Replace(strings.TrimPrefix(d.comments[key], "#"))), " ")
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", key, given, about)
	}
	if *update {
		if err := os.WriteFile(file, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(page.String(), string(got)); diff != "" {
		t.Errorf("docs/settings.md (-want +got); -update writes it:\n%s", diff)
	}
}
