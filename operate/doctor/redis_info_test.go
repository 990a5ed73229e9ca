package doctor

import (
	"fmt"
	"testing"
)

func TestSupportedVersions(t *testing.T) {
	for version, want := range map[string]string{
		"6.2.0": "<nil>", "7.0.15": "<nil>", "8.2.1": "<nil>",
		"6.0.16": "version 6.0.16 is too old: 6.2 or later is needed",
		"5.0.7":  "version 5.0.7 is too old: 6.2 or later is needed",
		"":       `does not report its version ("")`,
	} {
		if got := fmt.Sprint(Supported(version)); got != want {
			t.Errorf("Supported(%q) = %s, want %s", version, got, want)
		}
	}
}
