package redisstore

import (
	"bufio"
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A crash may tear the append-only file in the midst of what a script has written,
// which stands there as MULTI … EXEC. Redis (7.0.15 as tried) then cuts the file off
// behind the last whole command and goes on appending: the MULTI stays open. When
// the file is read a second time, what is queued behind it runs together with what
// comes after it, so that a batch which was applied again counts twice. Rewriting
// the file leaves nothing of that.

// mendAppendOnly has a server rewrite its append-only file that has not done so
// since it was started. Where it is not allowed to ask that, it is left alone:
// weir doctor tells of it.
func mendAppendOnly(ctx context.Context, c redis.Cmdable, info string) {
	if rewriteNeeded(info) {
		_ = c.BgRewriteAOF(ctx).Err() // one that is under way, or not allowed
	}
}

// rewriteNeeded says by a server's INFO whether what it has read when it was started
// may still be in its append-only file.
func rewriteNeeded(info string) bool {
	found := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(info)); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok {
			found[key] = value
		}
	}
	return found["aof_enabled"] == "1" && found["aof_last_rewrite_time_sec"] == "-1" &&
		found["aof_rewrite_in_progress"] == "0" && found["aof_rewrite_scheduled"] == "0"
}
