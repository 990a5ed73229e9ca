package node

import (
	"bytes"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/config"
)

func TestWarnsWhereEverybodyMayAsk(t *testing.T) {
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("0123456789abcdef"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		address string
		cfg     config.API
		warns   bool
	}{
		{"127.0.0.1:8080", config.API{}, false},
		{"[::1]:8080", config.API{}, false},
		{"0.0.0.0:8080", config.API{}, true},
		{"[::]:8080", config.API{}, true},
		{"10.0.0.1:8080", config.API{}, true},
		{"0.0.0.0:8080", config.API{TokensFile: tokens}, false},
	} {
		var log bytes.Buffer
		a, err := newGuard(c.cfg, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		address, err := net.ResolveTCPAddr("tcp", c.address)
		if err != nil {
			t.Fatal(err)
		}
		a.warn(address)
		if warned := strings.Contains(log.String(), "level=WARN"); warned != c.warns {
			t.Errorf("on %s, tokens %q: %q", c.address, c.cfg.TokensFile, log.String())
		}
	}
}
