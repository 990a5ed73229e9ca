package testkit

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"
)

var unsafeInNames = regexp.MustCompile(`[^a-z0-9]+`)

// Namespace returns a name that no other test or run uses: letters, digits and hyphens, for Redis
// namespaces, topics and consumer groups.
func Namespace(t testing.TB) string {
	name := strings.Trim(unsafeInNames.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
	name = strings.Trim(name[:min(len(name), 40)], "-")
	return name + "-" + strings.ToLower(rand.Text()[:8])
}
