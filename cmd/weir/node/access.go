package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/pipeline/retry"
	"github.com/weir-stream/weir/serve/access"
)

// guard decides which clients may ask the API, by files that it watches.
type guard struct {
	tokens       *credentials.Tokens       // nil if none are required
	certificates *credentials.Certificates // nil without encryption
	named        *credentials.Named        // the scopes of certificates; nil where tokens have them
	issuer       *credentials.Issuer       // of JSON web tokens; nil if none are accepted
	audit        *access.Audit             // nil if no authentication is required
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
	if cfg.OIDC.Issuer != "" {
		if a.issuer, err = newIssuer(cfg.OIDC); err != nil {
			return nil, err
		}
	}
	if a.tokens != nil || a.issuer != nil || cfg.TLS.ClientCA != "" {
		a.audit = &access.Audit{}
	}
	if t := cfg.TLS; t.Cert != "" {
		if a.certificates, err = credentials.LoadCertificates(t.Cert, t.Key, t.ClientCA); err != nil {
			return nil, err
		}
	}
	if cfg.TLS.ClientsFile != "" {
		if a.named, err = credentials.LoadNamed(cfg.TLS.ClientsFile); err != nil {
			return nil, fmt.Errorf("api.tls.clients_file: %w", err)
		}
	}
	return a, nil
}

func newIssuer(cfg config.OIDC) (*credentials.Issuer, error) {
	trusted := &tls.Config{MinVersion: tls.VersionTLS12}
	if cfg.CA != "" {
		var err error
		if trusted.RootCAs, err = credentials.Authorities(cfg.CA); err != nil {
			return nil, fmt.Errorf("api.oidc.ca: %w", err)
		}
	}
	return credentials.NewIssuer(credentials.IssuerConfig{
		URL: cfg.Issuer, Audience: cfg.Audience, ScopeClaim: cfg.ScopeClaim, ScopePrefix: cfg.ScopePrefix, TLS: trusted,
	}), nil
}

// rules returns the requirements on requests.
func (a *guard) rules() access.Rules {
	r := access.Rules{Certificate: a.cfg.TLS.ClientCA != "", OpenMetrics: a.cfg.OpenMetrics}
	if a.tokens != nil || a.issuer != nil {
		r.Identify = a.identify
	}
	if a.named != nil {
		r.Named = a.named.Scopes
	}
	r.Hosts, r.Audit = a.hosts(), a.audit
	return r
}

// identify identifies the owner of a token: from the file, or from the issuer.
func (a *guard) identify(ctx context.Context, token string) (*credentials.Client, error) {
	if a.tokens != nil {
		client, err := a.tokens.Identify(token)
		if err == nil || a.issuer == nil || !credentials.IsJWT(token) {
			return client, err
		}
	}
	return a.issuer.Identify(ctx, token)
}

// hosts are the names of the API: those of this machine and of the settings.
func (a *guard) hosts() access.Hosts {
	hosts := access.Hosts{}
	if name, err := os.Hostname(); err == nil {
		hosts = append(hosts, name)
	}
	if host, _, err := net.SplitHostPort(a.cfg.Listen); err == nil && host != "" {
		hosts = append(hosts, host)
	}
	return append(hosts, a.cfg.Hosts...)
}

// tls returns nil if the API is not encrypted.
func (a *guard) tls() *tls.Config {
	if a.certificates == nil {
		return nil
	}
	return a.certificates.TLS()
}

// summary describes the credentials that requests need; empty if they need none.
func (a *guard) summary() string {
	var wants []string
	if a.certificates != nil {
		wants = append(wants, "TLS")
	}
	if a.cfg.TLS.ClientCA != "" {
		wants = append(wants, "a client's certificate")
	}
	switch {
	case a.tokens != nil && a.issuer != nil:
		wants = append(wants, "one of "+spelling.Counted(a.tokens.Count(), "token")+" or one of "+a.cfg.OIDC.Issuer)
	case a.tokens != nil:
		wants = append(wants, "one of "+spelling.Counted(a.tokens.Count(), "token"))
	case a.issuer != nil:
		wants = append(wants, "a token of "+a.cfg.OIDC.Issuer)
	}
	if wants == nil {
		return ""
	}
	return "wants " + strings.Join(wants, ", ")
}

// warn logs that the API answers unauthorized requests.
func (a *guard) warn(listens net.Addr) {
	tcp, ok := listens.(*net.TCPAddr)
	if ok && tcp.IP.IsLoopback() || a.audit != nil {
		return
	}
	a.log.Warn("anyone who can reach this address is answered: set api.tokens_file, api.oidc or api.tls.client_ca, or listen on 127.0.0.1", "listen", listens)
}

// run checks the files at each tick until the context ends, and logs how much each client asked.
func (a *guard) run(ctx context.Context, ticks <-chan time.Time) {
	var discovering sync.WaitGroup
	defer discovering.Wait()
	if a.audit != nil {
		a.audit.Log(a.log, time.Now())
		defer func() { a.audit.Flush(a.log, time.Now()) }()
	}
	if a.issuer != nil {
		discovering.Go(func() { a.discover(ctx) })
	}
	for {
		select {
		case now := <-ticks:
			a.look()
			if a.audit != nil {
				a.audit.Log(a.log, now)
			}
		case <-ctx.Done():
			return
		}
	}
}

// discover asks the issuer of tokens for its keys until it answers.
func (a *guard) discover(ctx context.Context) {
	wait := retry.Backoff{First: time.Second, Longest: time.Minute}
	for {
		err := a.issuer.Discover(ctx)
		if err == nil {
			a.log.Info("tokens of an issuer are accepted", "issuer", a.cfg.OIDC.Issuer)
			return
		}
		if ctx.Err() != nil {
			return
		}
		a.log.Error("the issuer of tokens does not answer; requests with its tokens get 503", "error", err)
		if !retry.Wait(ctx, wait.Next()) {
			return
		}
	}
}

// look loads changed files. It reports unusable ones, and the earlier ones stay in use.
func (a *guard) look() {
	if a.tokens != nil && a.changed(a.tokens, "tokens refused; the previous ones stay valid") {
		a.log.Info("tokens loaded", "tokens", a.tokens.Count())
	}
	if a.named != nil && a.changed(a.named, "scopes of certificates refused; the previous ones stay valid") {
		a.log.Info("scopes of certificates loaded")
	}
	if a.certificates != nil && a.changed(a.certificates, "certificates refused; the previous ones stay in use") {
		a.log.Info("certificates loaded")
	}
}

// changed loads files if they have changed, and reports whether it did. It logs an error with what was refused.
func (a *guard) changed(files interface{ Look() (bool, error) }, refused string) bool {
	changed, err := files.Look()
	if err != nil {
		a.log.Error(refused, "error", err)
	}
	return changed
}
