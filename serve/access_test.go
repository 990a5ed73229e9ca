package serve

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/access"
)

const goodToken = "0123456789abcdef"

func tokenOnly(a *access.Rules) {
	as(&credentials.Client{Name: "engine", Scopes: credentials.AllScopes()})(a)
}

// as returns a change after which goodToken belongs to a client.
func as(client *credentials.Client) func(*access.Rules) {
	return func(a *access.Rules) {
		a.Identify = func(_ context.Context, given string) (*credentials.Client, error) {
			if given != goodToken {
				return nil, errors.New("the token is not valid here: it may be mistyped, or replaced by another")
			}
			return client, nil
		}
	}
}

func TestAccess(t *testing.T) {
	const (
		noToken = `{"error":{"code":"missing_token","message":"a token is required in the header Authorization: Bearer \u003ctoken\u003e"}}`
		wrong   = `{"error":{"code":"invalid_token","message":"the token is not valid here: it may be mistyped, or replaced by another"}}`
		noCert  = `{"error":{"code":"missing_certificate","message":"a client certificate signed by one of the server's authorities is required"}}`
		noScope = `{"error":{"code":"forbidden","message":"asking for features takes the scope query or service:NAME; you have none"}}`
		login   = `Bearer realm="weir"`
		again   = `Bearer realm="weir", error="invalid_token"`
	)
	named := func(scopes string) func(*access.Rules) {
		return func(a *access.Rules) {
			a.Certificate, a.Named = true, func(string) credentials.Scopes { return clientOf(t, "a "+scopes).Scopes }
		}
	}
	both := func(a *access.Rules) { tokenOnly(a); a.Certificate = true }
	for name, test := range map[string]struct {
		access        func(*access.Rules)
		path          string
		authorization string
		certificate   bool
		status        int
		challenge     string
		body          string // of the refusal
	}{
		"nothing is wanted":             {func(*access.Rules) {}, "/v1/features", "", false, 200, "", ""},
		"a token":                       {tokenOnly, "/v1/features", "Bearer " + goodToken, false, 200, "", ""},
		"a token, otherwise written":    {tokenOnly, "/v1/features", "bearer  " + goodToken, false, 200, "", ""},
		"no token":                      {tokenOnly, "/v1/features", "", false, 401, login, noToken},
		"another scheme":                {tokenOnly, "/v1/features", "Basic " + goodToken, false, 401, login, noToken},
		"a wrong token":                 {tokenOnly, "/v1/features", "Bearer x" + goodToken, false, 401, again, wrong},
		"an empty token":                {tokenOnly, "/v1/features", "Bearer", false, 401, again, wrong},
		"a path that is not there":      {tokenOnly, "/v2", "", false, 401, login, noToken},
		"a path that is nearly a probe": {tokenOnly, "/healthz/", "", false, 401, login, noToken},
		"a probe of life":               {both, "/healthz", "", false, 200, "", ""},
		"a probe of readiness":          {both, "/readyz", "", false, 200, "", ""},
		"metrics":                       {tokenOnly, "/metrics", "", false, 401, login, noToken},
		"metrics for all":               {func(a *access.Rules) { both(a); a.OpenMetrics = true }, "/metrics", "", false, 200, "", ""},
		"features, metrics for all":     {func(a *access.Rules) { both(a); a.OpenMetrics = true }, "/v1/features", "", false, 403, "", noCert},
		"a certificate with a scope":    {named("query"), "/v1/features", "", true, 200, "", ""},
		"its other requests":            {named("query"), "/v1/greatest-keys", "", true, 403, "", `{"error":{"code":"forbidden","message":"asking for /v1/greatest-keys takes the scope operator; you have query"}}`},
		"a certificate without scopes":  {func(a *access.Rules) { a.Certificate = true }, "/v1/features", "", true, 403, "", noScope},
		"the definitions without one":   {func(a *access.Rules) { a.Certificate = true }, "/v1/definitions", "", true, 403, "", `{"error":{"code":"forbidden","message":"asking for /v1/definitions takes the scope author; you have none"}}`},
		"no certificate":                {both, "/v1/features", "Bearer " + goodToken, false, 403, "", noCert},
		"a certificate, and no token":   {both, "/v1/features", "", true, 401, login, noToken},
		"a certificate and a token":     {both, "/v1/features", "Bearer " + goodToken, true, 200, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(&fakeReader{}, func(c *setup) { test.access(&c.Access) })
			r := httptest.NewRequest("GET", test.path, nil)
			r.TLS = &tls.ConnectionState{}
			if test.certificate {
				r.TLS.VerifiedChains = [][]*x509.Certificate{{{}}}
			}
			if test.authorization != "" {
				r.Header.Set("Authorization", test.authorization)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if got := w.Header().Get("WWW-Authenticate"); w.Code != test.status || got != test.challenge {
				t.Errorf("status %d, WWW-Authenticate %q; want %d, %q", w.Code, got, test.status, test.challenge)
			}
			if test.body != "" && strings.TrimSpace(w.Body.String()) != strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(test.body) {
				t.Errorf("\ngot  %s\nwant %s", w.Body, test.body)
			}
		})
	}
}

// A request without encryption has no certificate.
func TestCertificateWithoutTLS(t *testing.T) {
	h := newHandler(&fakeReader{}, func(c *setup) { c.Access.Certificate = true })
	if w := do(t, h, "GET", "/v1/features", ""); w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
}

func TestUnauthorizedRequestsAreCounted(t *testing.T) {
	metrics := prometheus.NewRegistry()
	h := newHandler(&fakeReader{}, func(c *setup) { tokenOnly(&c.Access); c.Registerer = metrics })
	do(t, h, "POST", queryPath, good)
	do(t, h, "GET", "/v1/features", "")
	want := `# HELP weir_requests_refused_total Requests without the required token or certificate, or to an unknown host, by the error's code.
# TYPE weir_requests_refused_total counter
weir_requests_refused_total{code="missing_token"} 2
`
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(want), "weir_requests_refused_total"); err != nil {
		t.Error(err)
	}
}

// Without credentials a server only answers to its own names, so that no foreign page can reach it by another name.
func TestHosts(t *testing.T) {
	own := func(a *access.Rules) { a.Hosts = access.Hosts{"Engine-1", "weir-api", "*.fraud.svc"} }
	withToken := func(a *access.Rules) { own(a); tokenOnly(a) }
	for _, test := range []struct {
		host   string
		access func(*access.Rules)
		status int
	}{
		{"localhost", own, 200},
		{"localhost:8080", own, 200},
		{"LOCALHOST.:8080", own, 200},
		{"weir.localhost:8080", own, 200},
		{"127.0.0.1:8080", own, 200},
		{"10.1.2.3", own, 200},
		{"[::1]:8080", own, 200},
		{"[fe80::1]", own, 200},
		{"", own, 200},
		{"engine-1:8080", own, 200},
		{"weir-api", own, 200},
		{"weir-api.fraud.svc:8080", own, 200},
		{"fraud.svc", own, 421},
		{"evilfraud.svc", own, 421},
		{"weir-api.evil.com:8080", own, 421},
		{"127.0.0.1.evil.com", own, 421},
		{"localhost.evil.com", own, 421},
		{"evil.com:8080", own, 421},
		{"evil.com:8080:8080", own, 421},
		{"evil.com", withToken, 200},
		{"evil.com", func(*access.Rules) {}, 200}, // no names are configured
	} {
		h := newHandler(&fakeReader{}, func(c *setup) { test.access(&c.Access) })
		r := httptest.NewRequest("GET", "/v1/features", nil)
		r.Host = test.host
		r.Header.Set("Authorization", "Bearer "+goodToken)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != test.status {
			t.Errorf("%q: %d %s, want %d", test.host, w.Code, w.Body, test.status)
		}
		// A browser has compared the name with the certificate.
		w, r.TLS = httptest.NewRecorder(), &tls.ConnectionState{}
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Errorf("%q over TLS: %d %s, want 200", test.host, w.Code, w.Body)
		}
	}
	metrics := prometheus.NewRegistry()
	h := newHandler(&fakeReader{}, func(c *setup) { own(&c.Access); c.Registerer = metrics })
	ask := func(path string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequest("GET", path, nil)
		r.Host = "evil.com:8080"
		h.ServeHTTP(w, r)
		return w
	}
	want := `{"error":{"code":"unknown_host","message":"this server is not known by the name \"evil.com:8080\": where it is, list the name in the setting api.hosts, or ask for tokens (api.tokens_file)"}}` + "\n"
	if w := ask("/metrics"); w.Code != http.StatusMisdirectedRequest || w.Body.String() != want {
		t.Errorf("%d %s\nwant 421 %s", w.Code, w.Body, want)
	}
	if w := ask("/readyz"); w.Code != http.StatusOK {
		t.Errorf("a probe: %d %s, want 200", w.Code, w.Body)
	}
	const counted = "weir_requests_refused_total"
	if n, err := testutil.GatherAndCount(metrics, counted); n != 1 || err != nil {
		t.Errorf("%d series of refused requests, error %v; want 1", n, err)
	}
}
