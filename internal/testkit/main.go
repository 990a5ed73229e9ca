package testkit

import (
	"os"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Main is Run for a package that has nothing else to do at its end: it exits
// with the tests' code.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests of a package, ends the servers they shared, says which
// these were, and returns the tests' code.
func Run(m *testing.M) int {
	code := m.Run()
	server.EndShared()
	return code
}
