package node

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
)

// NewLogger writes the process's log as the settings say, from a level on that
// may be changed.
func NewLogger(w io.Writer, cfg config.Log) (*slog.Logger, *LogLevel) {
	level := &LogLevel{}
	// The settings allow the four names that slog has, and no others.
	_ = level.settings.UnmarshalText([]byte(cfg.Level))
	level.Set(level.settings)
	options := &slog.HandlerOptions{Level: &level.LevelVar}
	if cfg.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), level
	}
	return slog.New(slog.NewTextHandler(w, options)), level
}

// LogLevel is the least weight of what is logged now.
type LogLevel struct {
	slog.LevelVar
	settings slog.Level
}

// more logs one weight more than until now, down to debug.
func (l *LogLevel) more() {
	const step = slog.LevelInfo - slog.LevelDebug
	l.Set(max(slog.LevelDebug, l.Level()-step))
}

// reset logs what the settings say.
func (l *LogLevel) reset() { l.Set(l.settings) }

// tell says which level is in force, at a weight that it lets through.
func (l *LogLevel) tell(log *slog.Logger) {
	log.Log(context.Background(), max(l.Level(), slog.LevelInfo), "log level is changed", "to", l.Level())
}

// LogRedis logs what the Redis client says of its own accord.
func LogRedis(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

// redisLog takes what the Redis client says of its own accord: connections
// lost and found again, which are told of where they matter.
type redisLog struct{ log *slog.Logger }

func (l redisLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "from", "redis client")
}
