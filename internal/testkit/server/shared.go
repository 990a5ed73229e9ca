package server

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

// StartTimeout bounds the start of one server. A broker takes 4 s on two free cores, and many times
// that while all packages' tests run.
const StartTimeout = 3 * time.Minute

// StartContext returns a context for the start of one server.
func StartContext() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), StartTimeout)
}

// shared holds what lives as long as the test binary.
var shared struct {
	sync.Mutex
	ends  []func()
	lines []string
}

// AtEnd registers a function that [EndShared] calls, the latest first.
func AtEnd(end func()) {
	shared.Lock()
	defer shared.Unlock()
	shared.ends = append(shared.ends, end)
}

// Announce logs to t which server it got. [EndShared] prints the lines of shared servers again, so
// that they show without -v.
func Announce(t testing.TB, sharedServer bool, format string, args ...any) {
	t.Helper()
	line := "testkit: " + fmt.Sprintf(format, args...)
	t.Log(line)
	if sharedServer {
		shared.Lock()
		defer shared.Unlock()
		shared.lines = append(shared.lines, line)
	}
}

// EndShared prints which servers the tests of the binary shared, and stops them.
func EndShared() {
	shared.Lock()
	ends, lines := shared.ends, shared.lines
	shared.Unlock()
	for _, line := range lines {
		fmt.Println(line)
	}
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
}

// DirPrefix is the prefix of each directory in the system's folder for temporary files.
const DirPrefix = "weir-testkit-"

// SharedDir makes a directory that [EndShared] removes. It also removes directories of binaries
// that were killed before they could, by the PID in their names.
func SharedDir() (string, error) {
	stale, err := filepath.Glob(filepath.Join(os.TempDir(), DirPrefix+"*"))
	if err != nil {
		return "", err
	}
	for _, dir := range stale {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), DirPrefix), "-")
		if n, err := strconv.Atoi(pid); err == nil && !Running(n) {
			_ = os.RemoveAll(dir) // another binary may be removing it too
		}
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("%s%d-", DirPrefix, os.Getpid()))
	if err != nil {
		return "", err
	}
	AtEnd(func() { _ = os.RemoveAll(dir) })
	return dir, nil
}
