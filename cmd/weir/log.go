package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/weir-stream/weir/config"
)

// newLogger writes the process's log as the settings say, from a level on that
// may be changed.
func newLogger(w io.Writer, cfg config.Log) (*slog.Logger, *logLevel) {
	level := &logLevel{}
	// The settings allow the four names that slog has, and no others.
	_ = level.settings.UnmarshalText([]byte(cfg.Level))
	level.Set(level.settings)
	options := &slog.HandlerOptions{Level: &level.LevelVar}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

// logLevel is the least weight of what is logged now.
type logLevel struct {
	slog.LevelVar
	settings slog.Level
}

// more logs one weight more than until now, down to debug.
func (l *logLevel) more() {
	const step = slog.LevelInfo - slog.LevelDebug
	l.Set(max(slog.LevelDebug, l.Level()-step))
}

// reset logs what the settings say.
func (l *logLevel) reset() { l.Set(l.settings) }

// tell says which level is in force, at a weight that it lets through.
func (l *logLevel) tell(log *slog.Logger) {
	log.Log(context.Background(), max(l.Level(), slog.LevelInfo), "log level is changed", "to", l.Level())
}

// redisLog takes what the Redis client says of its own accord: connections
// lost and found again, which are told of where they matter.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "from", "redis client")
}
