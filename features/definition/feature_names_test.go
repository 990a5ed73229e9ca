package definition

import (
	"slices"
	"strings"
	"testing"
)

// What other systems call a function is no function here, and what to write instead is one.
func TestOtherNames(t *testing.T) {
	for name, advice := range otherNames {
		if slices.Contains(functionNames(), name) {
			t.Errorf("%s is a function", name)
		}
		ours, _, _ := strings.Cut(strings.ToLower(advice), " ")
		if !slices.Contains(functionNames(), strings.TrimSuffix(ours, ",")) {
			t.Errorf("%s: %q begins with no function", name, advice)
		}
	}
}
