package node

import (
	"context"
	"io"
	"log/slog"

	"github.com/weir-stream/weir/config"
)

// NewLogger makes the process's logger according to the settings; its level may be changed.
func NewLogger(w io.Writer, cfg config.Log) (*slog.Logger, *logLevel) {
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

// logLevel is the current level of the log.
type logLevel struct {
	slog.LevelVar
	settings slog.Level
}

// more lowers the level by one step, down to debug.
func (l *logLevel) more() {
	const step = slog.LevelInfo - slog.LevelDebug
	l.Set(max(slog.LevelDebug, l.Level()-step))
}

// reset restores the level of the settings.
func (l *logLevel) reset() { l.Set(l.settings) }

// announce logs the current level, at a level that is not filtered.
func (l *logLevel) announce(log *slog.Logger) {
	log.Log(context.Background(), max(l.Level(), slog.LevelInfo), "log level is changed", "to", l.Level())
}
