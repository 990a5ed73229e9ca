package testkit

import (
	"flag"
	"os"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Main calls Run and exits with its code, for a package that has nothing else to clean up.
func Main(m *testing.M) { os.Exit(Run(m)) }

// together is how many parallel tests of a package run at once unless -parallel is given. They mostly wait for servers, so it is
// more than a small machine has cores; under the race detector they compute more, and servers must still answer in time.
func together() string {
	if Race {
		return "3"
	}
	return "4"
}

// Run runs the tests of a package, stops the servers they shared, prints which those were, and
// returns the tests' exit code.
func Run(m *testing.M) int {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", together()); err != nil {
			panic(err) // every test binary has the flag
		}
	}
	code := m.Run()
	server.EndShared()
	return code
}
