package integration_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
)

// binary is the program under test, built for this run.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "weir-binary-")
	if err != nil {
		fail(err)
	}
	binary = filepath.Join(dir, "weir")
	if out, err := exec.Command("go", "build", "-o", binary, "../cmd/weir").CombinedOutput(); err != nil {
		_ = os.RemoveAll(dir)
		fail(fmt.Errorf("build the binary: %w\n%s", err, out))
	}
	code := testkit.Run(m)
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
