//go:build !unix

package node

import "log/slog"

// FollowSignals does nothing where there are no signals for it.
func FollowSignals(*logLevel, *slog.Logger, bool) (stop func()) { return func() {} }
