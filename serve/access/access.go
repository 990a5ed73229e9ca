// Package access says who may ask: by a token, a certificate or the name that the server is asked by.
package access

import (
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/serve/reply"
)

// Rules says who may ask. The zero value lets everybody.
type Rules struct {
	// Token says whether a bearer token is valid; it is to take as long for those
	// that are not. Nil asks for none.
	Token func(token string) bool
	// Certificate asks for a client's certificate, which TLS has verified.
	Certificate bool
	// OpenMetrics leaves /metrics to everybody.
	OpenMetrics bool
	// Hosts are the names of the server, where it asks for neither token nor
	// certificate; nil lets requests to any name pass.
	Hosts Hosts
}

// open are the paths that everybody may ask: probes, which have no credentials,
// and what is the same for all who have the program.
var open = map[string]bool{"/healthz": true, "/readyz": true, "/": true, "/openapi.yaml": true}

// Admit passes on requests that have what is asked for, and refuses others, which are
// counted by the code of the refusal.
func (a Rules) Admit(next http.Handler, refused *prometheus.CounterVec) http.Handler {
	if a.Token == nil && !a.Certificate && a.Hosts == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if open[r.URL.Path] || strings.HasPrefix(r.URL.Path, "/page/") || a.OpenMetrics && r.URL.Path == "/metrics" {
			next.ServeHTTP(w, r)
			return
		}
		if refusal := a.refusal(r); refusal != nil {
			refused.WithLabelValues(string(refusal.Code)).Inc()
			if refusal.Status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", challenge(refusal.Code))
			}
			reply.Fail(w, refusal)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusal is nil for a request that may ask.
func (a Rules) refusal(r *http.Request) *reply.Error {
	if a.Certificate && (r.TLS == nil || len(r.TLS.VerifiedChains) == 0) {
		return reply.Errorf(reply.MissingCertificate, "a client's certificate is wanted that one of the server's authorities has signed")
	}
	if a.Token == nil {
		if !a.Certificate {
			return a.Hosts.refusal(r)
		}
		return nil
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return reply.Errorf(reply.MissingToken, "a token is wanted, in the header Authorization: Bearer <token>")
	}
	if !a.Token(strings.TrimSpace(token)) {
		return reply.Errorf(reply.InvalidToken, "the token is not valid here: it may be mistyped, or replaced by another")
	}
	return nil
}

// challenge says how to log in, as RFC 6750 has it.
func challenge(code reply.Code) string {
	if code == reply.InvalidToken {
		return `Bearer realm="weir", error="invalid_token"`
	}
	return `Bearer realm="weir"`
}
