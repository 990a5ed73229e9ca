// Package access says who may ask: by a token, a certificate or the name that the server is asked by.
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

// Rules says who may ask. The zero value lets everybody.
type Rules struct {
	// Identify finds out who shows a bearer token; the error says why it is not accepted, or is
	// credentials.ErrIssuerAway. It is to take as long for tokens that are not valid. Nil asks for none.
	Identify func(ctx context.Context, token string) (*credentials.Client, error)
	// Certificate asks for a client's certificate, which TLS has verified.
	Certificate bool
	// OpenMetrics leaves /metrics to everybody.
	OpenMetrics bool
	// Hosts are the names of the server, where it asks for neither token nor
	// certificate; nil lets requests to any name pass.
	Hosts Hosts
	// Audit counts who asked how much; nil counts nothing.
	Audit *Audit
}

// open are the paths that everybody may ask: probes, which have no credentials,
// and what is the same for all who have the program.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/": true, "/openapi.yaml": true}

// ofAdministrators are the paths that tell of the server and not of features.
var ofAdministrators = map[string]bool{"/metrics": true, "/v1/status": true}

// Admit passes on requests that have what is asked for, with their Client, and refuses others,
// which are counted by the code of the refusal.
func (a Rules) Admit(next http.Handler, refused *prometheus.CounterVec) http.Handler {
	if a.Identify == nil && !a.Certificate && a.Hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] || strings.HasPrefix(r.URL.Path, "/page/") || a.OpenMetrics && r.URL.Path == "/metrics" {
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

type clientKey struct{}

// Client is who asks in a context of a request; nil where nobody has to say.
func Client(ctx context.Context) *credentials.Client {
	client, _ := ctx.Value(clientKey{}).(*credentials.Client)
	return client
}

// admit finds out who asks; without a refusal it may.
func (a Rules) admit(r *http.Request) (*credentials.Client, *reply.Error) {
	client, refusal := a.client(r)
	if refusal != nil || client == nil {
		return nil, refusal
	}
	scopes := client.Scopes
	switch {
	case ofAdministrators[r.URL.Path] && !scopes.Admin():
		return nil, Forbidden("asking for "+r.URL.Path, "admin", client)
	case !ofAdministrators[r.URL.Path] && !scopes.Query():
		return nil, Forbidden("asking for features", "query or service:NAME", client)
	}
	return client, nil
}

// Forbidden refuses a client what a scope would allow that it has not.
func Forbidden(what, wants string, client *credentials.Client) *reply.Error {
	return reply.Errorf(reply.Forbidden, "%s takes the scope %s; the token has %v", what, wants, client.Scopes)
}

// client is who shows a certificate or a token; nil where neither is asked for.
func (a Rules) client(r *http.Request) (*credentials.Client, *reply.Error) {
	if a.Certificate && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return nil, reply.Errorf(reply.MissingCertificate, "a client's certificate is wanted that one of the server's authorities has signed")
	}
	if a.Identify == nil {
		if !a.Certificate {
			return nil, a.Hosts.refusal(r)
		}
		return &credentials.Client{Name: r.TLS.VerifiedChains[0][0].Subject.CommonName, Scopes: credentials.AllScopes()}, nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, reply.Errorf(reply.MissingToken, "a token is wanted, in the header Authorization: Bearer <token>")
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

// challenge says how to log in, as RFC 6750 has it; empty where that would not help.
func challenge(code reply.Code) string {
	switch code {
	case reply.MissingToken:
		return `Bearer realm="weir"`
	case reply.InvalidToken:
		return `Bearer realm="weir", error="invalid_token"`
	}
	return ""
}
