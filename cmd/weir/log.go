package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/weir-stream/weir/config"
)

// newLogger writes the process's log as the settings say.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	// The settings allow the four names that slog has, and no others.
	_ = level.UnmarshalText([]byte(cfg.Level))
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// redisLog takes what the Redis client says of its own accord: connections
// lost and found again, which are told of where they matter.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "from", "redis client")
}
