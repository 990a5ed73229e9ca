//go:build !unix

package node

import "log/slog"

// FollowSignals does nothing where there are no signals for it.
func FollowSignals(*logLevel, *slog.Logger) (stop func()) { return func() {} }
