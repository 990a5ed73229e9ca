package doctor

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// hiding is a server that does not report its configuration.
type hiding struct {
	refuses bool // or else it replies with nothing
	asked   int
}

func (h *hiding) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h *hiding) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *hiding) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, c redis.Cmder) error {
		if c.Name() != "config" {
			return next(ctx, c)
		}
		h.asked++
		if h.refuses {
			err := errors.New("ERR unknown command 'config'")
			c.SetErr(err)
			return err
		}
		c.(*redis.MapStringStringCmd).SetVal(map[string]string{})
		return nil
	}
}

// A server that forbids CONFIG, or reports nothing, as those of providers do, is judged by what it does say. One that has
// refused is not asked again.
func TestServerWithoutConfig(t *testing.T) {
	for _, refuses := range []bool{true, false} {
		client := redistest.Shared(t).Client(t)
		h := &hiding{refuses: refuses}
		client.AddHook(h)
		for _, line := range lines(redisServer(t.Context(), "redis", client, false, false), "redis") {
			if strings.HasPrefix(line, "FAIL") || strings.Contains(line, "aof-load-truncated is") || strings.Contains(line, "save") {
				t.Errorf("refused %t: %s", refuses, line)
			}
		}
		if want := map[bool]int{true: 1, false: 6}[refuses]; h.asked != want {
			t.Errorf("refused %t: CONFIG was asked %d times, want %d", refuses, h.asked, want)
		}
	}
}
