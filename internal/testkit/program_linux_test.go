package testkit

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Killing a server also kills the processes that it has forked.
func TestKillEndsForkedProcesses(t *testing.T) {
	p := Start(t, "/bin/sh", "-c", "sleep 600 & echo $!; wait")
	child := 0
	Eventually(t, time.Minute, "the number of the forked process", func() (bool, string) {
		var err error
		child, err = strconv.Atoi(strings.TrimSpace(p.Log()))
		return err == nil, p.Log()
	})
	p.Kill()
	Eventually(t, time.Minute, "the forked process is gone", func() (bool, string) { return !server.Running(child), "it runs" })
}
