//go:build unix

package node

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// FollowSignals changes the level at SIGUSR1 and puts it back at SIGUSR2, until
// stop is called.
func FollowSignals(level *logLevel, log *slog.Logger) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGUSR1 {
					level.more()
				} else {
					level.reset()
				}
				level.announce(log)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}
