//go:build !linux

package timerslack

import "time"

// Raise does nothing: only Linux has a timer slack.
func Raise(time.Duration) {}
