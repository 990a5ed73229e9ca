package integration_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/blackbox"
)

// binary is the program under test, built for this run.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-binary-")
	if err != nil {
		fail(err)
	}
	if binary, err = blackbox.Build(dir, testkit.Race); err != nil {
		_ = os.RemoveAll(dir)
		fail(err)
	}
	code := testkit.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// fewer reduces a number of events to a tenth under the race detector, because processes and the
// model take several times as long for each.
func fewer(events int) int {
	if testkit.Race {
		return events / 10
	}
	return events
}
