package redisconn

import (
	"testing"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/operate/doctor"
)

// A number of shards that the namespace does not have is said to have no effect.
func TestCheckOfTheLayout(t *testing.T) {
	cfg := config.Default()
	cfg.Redis.Addresses = []string{redistest.Embedded(t).Addr()}
	layout := func() (found string) {
		for _, f := range Check(t.Context(), cfg, true, false) {
			if f.Subject == "layout" && f.Verdict == doctor.OK {
				found = f.Found
			}
		}
		return found
	}
	if got, want := layout(), "the namespace is new"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	client, err := Client(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cfg.Shards = 4
	s, err := NewStore(cfg, client)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	for shards, want := range map[int]string{4: "fits the settings", 8: "fits the settings; it has 4 shards, and shards: 8 is for a new namespace"} {
		cfg.Shards = shards
		if got := layout(); got != want {
			t.Errorf("with %d shards: got %q, want %q", shards, got, want)
		}
	}
}
