package node

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-stream/weir/config"
)

// A long wait does not fill the log, and its end is logged. Readiness always says why the process waits.
func TestLongWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log, _ := NewLogger(&out, config.Log{Level: "info", Format: "text"})
		n := &Node{log: log}
		began := time.Now()
		err := n.waitFor(t.Context(), "Redis", func(context.Context) error {
			if waits := n.waits.Load(); time.Now() != began && (waits == nil || (*waits).Error() != "waiting for Redis: it is away") {
				t.Errorf("readiness says %v", waits)
			}
			if time.Since(began) < 100*time.Second {
				return errors.New("it is away")
			}
			return nil
		})
		if err != nil || n.waits.Load() != nil {
			t.Errorf("got error %v; readiness says %v", err, n.waits.Load())
		}
		var got strings.Builder
		for line := range strings.Lines(out.String()) {
			got.WriteString(line[strings.Index(line, "level="):])
		}
		const want = `level=WARN msg="waiting for Redis" error="it is away" for=0s
level=WARN msg="waiting for Redis" error="it is away" for=30s
level=WARN msg="waiting for Redis" error="it is away" for=1m0s
level=WARN msg="waiting for Redis" error="it is away" for=1m30s
level=INFO msg="no longer waiting for Redis" after=1m40s
`
		if got.String() != want {
			t.Errorf("logged\n%swant\n%s", got.String(), want)
		}
	})
}
