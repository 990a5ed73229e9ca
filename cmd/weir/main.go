// Command weir computes features for fraud and risk decisions from Kafka into
// Redis and answers questions about them over HTTP.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
	_ "time/tzdata" // an image from scratch has no database of time zones

	"github.com/weir-stream/weir/cmd/weir/connect"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/internal/reworded/brokers"
	"github.com/weir-stream/weir/internal/timerslack"
)

// timerSlack is how late the kernel may wake a thread of weir run. With the 50 µs of Linux a sixth of the CPU of a
// process that is not busy goes into Go's monitor thread, see docs/performance.md.
const timerSlack = 500 * time.Microsecond

// garbage is the GC percentage: Weir keeps little in memory, and would collect a hundred times a
// second at Go's default of 100.
const garbage = 400

func main() {
	command := newRootCommand()
	if found, _, err := command.Find(os.Args[1:]); err == nil && found.Name() == "run" {
		timerslack.Raise(timerSlack)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal has the default effect: it ends the process at once.
	context.AfterFunc(ctx, stop)

	connect.LogStoreClient(noLog) // weir run and weir demo have a log
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, message(err))
		os.Exit(exitCode(err))
	}
}

// exitCode returns 1, except for findings that a gate in CI must distinguish from failures.
func exitCode(err error) int {
	if _, ok := errors.AsType[*losesState](err); ok {
		return 2
	}
	return 1
}

// message formats an error in plain words. Findings are unchanged, one on each line, so that editors can jump to
// them.
func message(err error) string {
	if _, ok := errors.AsType[definition.Findings](err); ok {
		return err.Error()
	}
	if _, ok := errors.AsType[config.Findings](err); ok {
		return err.Error()
	}
	return "weir: " + brokers.Plainly(err).Error()
}
