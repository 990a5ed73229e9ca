package access

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/weir-stream/weir/serve/reply"
)

// An attacker's web page can make its own name resolve to this machine ("DNS rebinding"): a browser then lets it read
// everything that needs no credentials. Such requests have the page's name in the header Host. So a server that
// requires no credentials only answers requests whose Host it knows.

// Hosts are the names under which a server is reached: whole names such as "weir-api", or "*.example.com" for all names
// below one. Addresses are always known, because a page's own name is never an address. So are localhost and all names
// below it.
type Hosts []string

// knows reports whether a host, which may have a port, is known.
func (names Hosts) knows(host string) bool {
	if host == "" { // HTTP/1.0, which browsers do not use
		return true
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	return slices.ContainsFunc(names, func(known string) bool {
		known = strings.ToLower(strings.TrimSuffix(known, "."))
		if below, ok := strings.CutPrefix(known, "*"); ok {
			return strings.HasSuffix(host, below)
		}
		return host == known
	})
}

// Only passes on requests to known names, and answers others with 421.
func (names Hosts) Only(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refusal := names.refusal(r); refusal != nil {
			reply.Fail(w, refusal)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// refusal returns nil for a request to a known host. Over TLS a browser has compared the name with the certificate.
func (names Hosts) refusal(r *http.Request) *reply.Error {
	if names == nil || r.TLS != nil || names.knows(r.Host) {
		return nil
	}
	return reply.Errorf(reply.UnknownHost, "this server is not known by the name %s: where it is, list the name in the setting api.hosts, "+
		"or ask for tokens (api.tokens_file)", reply.Quote(r.Host))
}
