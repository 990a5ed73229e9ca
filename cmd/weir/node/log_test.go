package node

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weir-stream/weir/config"
)

func TestLogLevel(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		log, level := NewLogger(&out, config.Log{Level: "error", Format: format})
		var shown []string
		for range 5 {
			before := out.String()
			log.Debug("d")
			log.Info("i")
			log.Warn("w")
			log.Error("e")
			shown = append(shown, strings.Join(strings.Fields(strings.TrimPrefix(out.String(), before)), " "))
			level.more()
		}
		for i, want := range []int{1, 2, 3, 4, 4} {
			if n := strings.Count(shown[i], "msg"); n != want {
				t.Errorf("after %d changes: %d lines, want %d: %s", i, n, want, shown[i])
			}
		}
		level.reset()
		before := out.String()
		level.announce(log)
		if got := strings.TrimPrefix(out.String(), before); !strings.Contains(got, "log level is changed") || !strings.Contains(got, "ERROR") {
			t.Errorf("at level error the change of level logs %q", got)
		}
	}
}
