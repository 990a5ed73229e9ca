package node

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/weir-stream/weir/serve/access"
)

func TestNoProfiles(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	if p, err := startProfiles("", access.Hosts{}, log); p != nil || err != nil {
		t.Errorf("without an address: got %v, error %v; want no profiles", p, err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	if _, err := startProfiles(taken.Addr().String(), access.Hosts{}, log); err == nil || !strings.HasPrefix(err.Error(), "profiles.listen: listen tcp "+taken.Addr().String()) {
		t.Errorf("with an address in use: got error %v", err)
	}
}
