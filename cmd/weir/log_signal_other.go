//go:build !unix

package main

import "log/slog"

// followSignals does nothing where there are no signals for it.
func followSignals(*logLevel, *slog.Logger) (stop func()) { return func() {} }
