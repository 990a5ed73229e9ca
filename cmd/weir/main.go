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

	_ "time/tzdata" // an image from scratch has no database of time zones

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
)

// garbage is how much of it may gather, in percent of what is live: Weir keeps
// little in memory, and would collect a hundred times a second at Go's 100.
const garbage = 400

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	// A second signal finds the default behaviour: it ends the process at once.
	context.AfterFunc(ctx, stop)

	command := newRootCommand()
	if err := command.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, message(err))
		os.Exit(exitCode(err))
	}
}

// exitCode is 1, but for findings that a gate in CI is to tell from failures.
func exitCode(err error) int {
	if _, ok := errors.AsType[*losesState](err); ok {
		return 2
	}
	return 1
}

// message is what is said about an error. Findings stand as they are, a line
// each, for editors to jump to their places.
func message(err error) string {
	if _, ok := errors.AsType[definition.Findings](err); ok {
		return err.Error()
	}
	if _, ok := errors.AsType[config.Findings](err); ok {
		return err.Error()
	}
	return "weir: " + err.Error()
}
