//go:build unix

package node

import (
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

// FollowSignals changes the level at SIGUSR1 and puts it back at SIGUSR2, until stop is called. SIGHUP, by which services
// are told to read their settings again, does not end the process, unless it means that its terminal was closed.
func FollowSignals(level *logLevel, log *slog.Logger, onTerminal bool) (stop func()) {
	signals, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	if !onTerminal {
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		for {
			select {
			case s := <-signals:
				switch s {
				case syscall.SIGHUP:
					log.Warn("SIGHUP changes nothing: definitions, tokens and certificates are read again when their files change, passwords at each login, and other settings when the process starts")
					continue
				case syscall.SIGUSR1:
					level.more()
				default:
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
