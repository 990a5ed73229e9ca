package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"github.com/weir-stream/weir/cmd/weir/say"
	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/access"
)

// guard is who may ask the API, by files that are watched.
type guard struct {
	tokens       *credentials.Tokens       // nil where none are wanted
	certificates *credentials.Certificates // nil without encryption
	cfg          config.API
	log          *slog.Logger
}

func newGuard(cfg config.API, log *slog.Logger) (*guard, error) {
	a := &guard{cfg: cfg, log: log}
	var err error
	if cfg.TokensFile != "" {
		if a.tokens, err = credentials.LoadTokens(cfg.TokensFile); err != nil {
			return nil, fmt.Errorf("api.tokens_file: %w", err)
		}
	}
	if t := cfg.TLS; t.Cert != "" {
		if a.certificates, err = credentials.LoadCertificates(t.Cert, t.Key, t.ClientCA); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// rules is what requests must show.
func (a *guard) rules() access.Rules {
	r := access.Rules{Certificate: a.cfg.TLS.ClientCA != "", OpenMetrics: a.cfg.OpenMetrics}
	if a.tokens != nil {
		r.Token = a.tokens.Valid
	}
	r.Hosts = a.hosts()
	return r
}

func (a *guard) hosts() access.Hosts { return Hosts(a.cfg) }

// Hosts are the names under which an API is asked: those of this machine and of the settings.
func Hosts(cfg config.API) access.Hosts {
	hosts := access.Hosts{}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if host, _, err := net.SplitHostPort(cfg.Listen); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return append(hosts, cfg.Hosts...)
}

// tls is nil for answers that are not encrypted.
func (a *guard) tls() *tls.Config {
	if a.certificates == nil {
		return nil
	}
	return a.certificates.TLS()
}

// summary says what requests must show, and is empty where it is nothing.
func (a *guard) summary() string {
	var wants []string
	if a.certificates != nil {
		wants = append(wants, "TLS")
	}
	if a.cfg.TLS.ClientCA != "" {
		wants = append(wants, "a client's certificate")
	}
	if a.tokens != nil {
		wants = append(wants, "one of "+say.Number(a.tokens.Count(), "token"))
	}
	if wants == nil {
		return ""
	}
	return "wants " + strings.Join(wants, ", ")
}

// warn tells of an API that answers strangers.
func (a *guard) warn(listens net.Addr) {
	tcp, ok := listens.(*net.TCPAddr)
	if ok && tcp.IP.IsLoopback() || a.tokens != nil || a.cfg.TLS.ClientCA != "" {
		return
	}
	a.log.Warn("whoever reaches this address is answered: set api.tokens_file or api.tls.client_ca, or listen on 127.0.0.1", "listen", listens)
}

// Run looks at the files at each tick until the context ends.
func (a *guard) Run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ticks:
			a.look()
		case <-ctx.Done():
			return
		}
	}
}

// look takes what has changed. What is unusable is told of, and the one before
// stays in use.
func (a *guard) look() {
	if a.tokens != nil {
		changed, err := a.tokens.Look()
		if err != nil {
			a.log.Error("tokens refused, those before stay valid", "error", err)
		}
		if changed {
			a.log.Info("tokens taken", "tokens", a.tokens.Count())
		}
	}
	if a.certificates != nil {
		changed, err := a.certificates.Look()
		if err != nil {
			a.log.Error("certificates refused, those before stay in use", "error", err)
		}
		if changed {
			a.log.Info("certificates taken")
		}
	}
}
