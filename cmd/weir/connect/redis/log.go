package redisconn

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"
)

// LogTo logs the client's own messages.
func LogTo(log *slog.Logger) { redis.SetLogger(clientLog{log}) }

// clientLog receives the client's own messages: lost and restored connections, which callers also report.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...), "from", "redis client")
}
