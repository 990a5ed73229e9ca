package testkit

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds the start of one server. A broker takes 4 s on two free
// cores and many times that on a machine that runs all packages' tests.
const startTimeout = 3 * time.Minute

func startContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), startTimeout)
}

// shared is what lives as long as the test binary.
var shared struct {
	sync.Mutex
	ends  []func()
	lines []string
}

// atEnd has [Main] call end after the last test, the latest first.
func atEnd(end func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.ends = append(shared.ends, end)
}

// announce writes to the log of t which server it got, and has [Main] repeat
// the lines of shared servers at the end, where -v is not needed to see them.
func announce(t testing.TB, sharedServer bool, format string, args ...any) {
	t.Helper()
	line := "testkit: " + fmt.Sprintf(format, args...)
	t.Log(line)
	if sharedServer {
		shared.Lock()
		defer shared.Unlock()
		shared.lines = append(shared.lines, line)
	}
}

// Main is Run for a package that has nothing else to do at its end: it exits
// with the tests' code.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run runs the tests of a package, ends the servers they shared, says which
// these were, and returns the tests' code.
func Run(m *testing.M) int {
	code := m.Run()
	shared.Lock()
	ends, lines := shared.ends, shared.lines
	shared.Unlock()
	for _, line := range lines {
		fmt.Println(line)
	}
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	return code
}

const dirPrefix = "weir-testkit-"

// sharedDir makes a directory that Main removes. Directories of binaries that
// were killed before they could are removed here, by the pid in their name.
func sharedDir() (string, error) {
	stale, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range stale {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), dirPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && !running(n) {
			_ = os.RemoveAll(dir) // another binary may be at it too
		}
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", dirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	atEnd(func() { _ = os.RemoveAll(dir) })
	return dir, nil
}
