package node

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/serve/access"
)

func TestWarnsOfOpenAccess(t *testing.T) {
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
			t.Errorf("listening on %s with tokens_file %q, unexpected log: %q", c.address, c.cfg.TokensFile, log.String())
		}
	}
}

// A token is valid if the file lists it or the issuer signed it; the issuer is contacted once the
// process runs.
func TestTokensOfFileAndIssuer(t *testing.T) {
	provider := auth.NewIssuer(t)
	const token = "0123456789.abc.def"
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte(token+" engine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	issuer := config.OIDC{Issuer: provider.URL, Audience: auth.IssuerAudience, ScopeClaim: "scope"}
	var log bytes.Buffer
	a, err := newGuard(config.API{TokensFile: tokens, OIDC: issuer}, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := a.summary(), "wants one of 1 token or one of "+provider.URL; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	alone, err := newGuard(config.API{OIDC: issuer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := alone.summary(), "wants a token of "+provider.URL; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	name := func(token string) string {
		client, err := a.rules().Identify(t.Context(), token)
		if err != nil {
			return err.Error()
		}
		return client.Name
	}
	signed := provider.Token("payments")
	if got := name(signed); got != credentials.ErrIssuerAway.Error() {
		t.Errorf("before the issuer was asked: %s", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { a.run(ctx, nil) })
	testkit.Eventually(t, time.Minute, "the issuer being known", func() (bool, string) { return name(signed) == "payments", name(signed) })
	stop()
	running.Wait()
	if want := "issuer=" + provider.URL; !strings.Contains(log.String(), want) {
		t.Errorf("the log does not say %s:\n%s", want, log.String())
	}
	for token, want := range map[string]string{token: "engine", "fedcba9876543210": "the token is not valid here: it may be mistyped, or replaced by another"} {
		if got := name(token); got != want {
			t.Errorf("%s: %s, want %s", token, got, want)
		}
	}
}

// The names of an API are the machine's, the one in its address, and those in its settings.
func TestHostsOfAnAPI(t *testing.T) {
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	a, err := newGuard(config.API{Listen: "weir.internal:8080", Hosts: []string{"weir-api"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(access.Hosts{hostname, "weir.internal", "weir-api"}, a.hosts()); diff != "" {
		t.Error(diff)
	}
}
