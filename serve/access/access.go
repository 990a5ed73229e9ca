// Package access decides who may ask: by token, certificate and host name.
package access

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/reply"
)

// Rules determine who may ask. The zero value admits all clients.
type Rules struct {
	// Identify identifies the owner of a bearer token; the error says why the token is rejected, or is
	// credentials.ErrIssuerAway. It must take equally long for invalid tokens. If it is nil, no token is required.
	Identify func(ctx context.Context, token string) (*credentials.Client, error)
	// Certificate requires a client certificate, which TLS has verified.
	Certificate bool
	// Named returns the scopes of a certificate by its common name, where no token is required; nil allows nothing.
	Named func(name string) credentials.Scopes
	// OpenMetrics makes /metrics public.
	OpenMetrics bool
	// Hosts are the names of the server, if it requires neither token nor certificate; nil allows any name.
	Hosts Hosts
	// Audit counts requests by client; nil counts nothing.
	Audit *Audit
}

// open are the public paths: probes, which have no credentials, and content that is part of the program.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/": true, "/openapi.yaml": true}

// reserved are the paths that are not questions about features, each with the scope that it takes.
var reserved = map[string]struct {
	scope string
	in    func(credentials.Scopes) bool
}{
	"/metrics":          {"metrics", credentials.Scopes.Metrics},
	"/v1/definitions":   {"author", credentials.Scopes.Author},
	"/v1/preview":       {"author", credentials.Scopes.Author},
	"/v1/status":        {"operator", credentials.Scopes.Operator},
	"/v1/dead-letters":  {"operator", credentials.Scopes.Operator},
	"/v1/greatest-keys": {"operator", credentials.Scopes.Operator},
	"/v1/busiest":       {"operator", credentials.Scopes.Operator},
	listPaths:           {"lists", credentials.Scopes.Lists},
}

// listPaths begins the paths of lists.
const listPaths = "/v1/lists/"

// Admit passes on requests with the required credentials, with their Client, and refuses others,
// counted by the refusal's code.
func (a Rules) Admit(next http.Handler, refused *prometheus.CounterVec) http.Handler {
	if a.Identify == nil && !a.Certificate && a.Hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] || strings.HasPrefix(r.URL.Path, "/page/") || a.OpenMetrics && r.URL.Path == "/metrics" {
			if r.URL.Path == "/readyz" {
				if client, refusal := a.client(r); refusal != nil || client != nil && !client.Scopes.Operator() {
					r = r.WithContext(context.WithValue(r.Context(), strangerKey{}, true))
				}
			}
			next.ServeHTTP(w, r)
			return
		}
		client, refusal := a.admit(r)
		if refusal != nil {
			refused.WithLabelValues(string(refusal.Code)).Inc()
			if challenge := challenge(refusal.Code); challenge != "" {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			reply.Fail(w, refusal)
			return
		}
		if client != nil {
			r = r.WithContext(context.WithValue(r.Context(), clientKey{}, client))
		}
		next.ServeHTTP(w, r)
	})
}

type (
	clientKey   struct{}
	strangerKey struct{}
)

// Stranger reports whether credentials are required, and the client of an open path has shown none of the scope operator.
func Stranger(ctx context.Context) bool { return ctx.Value(strangerKey{}) != nil }

// Client returns the client of a request's context; nil if no credentials are required.
func Client(ctx context.Context) *credentials.Client {
	client, _ := ctx.Value(clientKey{}).(*credentials.Client)
	return client
}

// admit identifies the client. It returns a refusal if the client is not admitted.
func (a Rules) admit(r *http.Request) (*credentials.Client, *reply.Error) {
	client, refusal := a.client(r)
	if refusal != nil || client == nil {
		return nil, refusal
	}
	of := r.URL.Path
	if strings.HasPrefix(of, listPaths) {
		of = listPaths
	}
	if path, is := reserved[of]; is {
		if !path.in(client.Scopes) {
			return nil, Forbidden("asking for "+r.URL.Path, path.scope, client)
		}
	} else if !client.Scopes.Query() {
		return nil, Forbidden("asking for features", "query or service:NAME", client)
	}
	return client, nil
}

// Forbidden refuses a request for which the client lacks a scope.
func Forbidden(what, wants string, client *credentials.Client) *reply.Error {
	return reply.Errorf(reply.Forbidden, "%s takes the scope %s; you have %v", what, wants, client.Scopes)
}

// client returns the owner of a certificate or a token; nil if neither is required.
func (a Rules) client(r *http.Request) (*credentials.Client, *reply.Error) {
	if a.Certificate && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return nil, reply.Errorf(reply.MissingCertificate, "a client certificate signed by one of the server's authorities is required")
	}
	if a.Identify == nil {
		if !a.Certificate {
			return nil, a.Hosts.refusal(r)
		}
		client := &credentials.Client{Name: r.TLS.VerifiedChains[0][0].Subject.CommonName}
		if a.Named != nil {
			client.Scopes = a.Named(client.Name)
		}
		return client, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, reply.Errorf(reply.MissingToken, "a token is required in the header Authorization: Bearer <token>")
	}
	client, err := a.Identify(r.Context(), strings.TrimSpace(token))
	switch {
	case errors.Is(err, credentials.ErrIssuerAway):
		return nil, reply.Errorf(reply.IssuerUnavailable, "%v", err)
	case err != nil:
		return nil, reply.Errorf(reply.InvalidToken, "%v", err)
	}
	return client, nil
}

// challenge says how to authenticate, as in RFC 6750; empty if that would not help.
func challenge(code reply.Code) string {
	switch code {
	case reply.MissingToken:
		return `Bearer realm="weir"`
	case reply.InvalidToken:
		return `Bearer realm="weir", error="invalid_token"`
	}
	return ""
}
