package testkit

import (
	"os"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Main calls Run and exits with its code, for a package that has nothing else to clean up.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests of a package, stops the servers they shared, prints which those were, and
// returns the tests' exit code.
func Run(m *testing.M) int {
	code := m.Run()
	server.EndShared()
	return code
}
