package main

import (
	"strings"
	"testing"
)

// A command's own flags come before the fifty settings.
func TestUsage(t *testing.T) {
	t.Parallel()
	const settings = "\n\nSettings of weir.yaml, whose variables in the environment begin with WEIR_:\n"
	for command, test := range map[string]struct{ own, setting string }{
		"run":          {"--check", "--kafka.brokers"},
		"progress set": {"--again", "--kafka.brokers"},
		"demo":         {"--features", ""}, // a flag of its own
		"query":        {"--service", ""},
	} {
		out, err := weir(t, append(strings.Fields(command), "--help")...)
		if err != nil {
			t.Fatal(err)
		}
		own, of, found := strings.Cut(out, settings)
		if !strings.Contains(own, "\nFlags:\n") || !strings.Contains(own, "      "+test.own+" ") {
			t.Errorf("weir %s --help does not show %s among its flags:\n%s", command, test.own, out)
		}
		if found != (test.setting != "") || !strings.Contains(of, test.setting) || strings.Contains(own, "      --kafka.brokers ") || strings.Contains(out, "Global Flags") {
			t.Errorf("weir %s --help shows the settings in the wrong place:\n%s", command, out)
		}
	}
}
