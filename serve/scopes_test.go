package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/serve/access"
	"github.com/weir-stream/weir/serve/catalogue"
)

// clientOf is the client of a line in a file of tokens.
func clientOf(t testing.TB, line string) *credentials.Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(goodToken+" "+line), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := credentials.LoadTokens(path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := tokens.Identify(goodToken)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// askWithToken asks as the client of goodToken.
func askWithToken(t *testing.T, h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	t.Helper()
	r, w := httptest.NewRequest(method, target, strings.NewReader(body)), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer "+goodToken)
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(w, r)
	checkContract(t, method, target, body, w)
	return w
}

// A client gets the answers that its scopes allow. payment_risk has the features user_last, device_tx_7d and
// device_amount_7d.
func TestScopes(t *testing.T) {
	const device, user = `"entities":[{"device_id":"d1"}]`, `"entities":[{"device_id":"d1","user_id":"u1"}]`
	feature := `{"error":{"code":"forbidden","message":"asking for the feature device_avg_7d takes the scope query; you have service:payment_risk","feature":"device_avg_7d"}}`
	for _, test := range []struct {
		name, client, method, target, body string
		status                             int
		want                               string // of a refusal
	}{
		{"a service in scope", "a service:payment_risk", "POST", queryPath, `{"service":"payment_risk",` + user + `}`, 200, ""},
		{"a feature in scope", "a service:payment_risk", "POST", queryPath, `{"features":["device_tx_7d"],` + device + `}`, 200, ""},
		{"a feature in no service", "a service:payment_risk", "POST", queryPath, `{"features":["device_tx_7d","device_avg_7d"],` + device + `}`, 403, feature},
		{"the same with GET", "a service:payment_risk", "GET", "/v1/features/device_avg_7d?device_id=d1", "", 403, feature},
		{"its timeline", "a service:payment_risk", "GET", "/v1/timeline/device_avg_7d?device_id=d1", "", 403, feature},
		{"a feature in scope with GET", "a service:payment_risk", "GET", "/v1/features/device_tx_7d?device_id=d1", "", 200, ""},
		{"another service", "a service:login_risk", "POST", queryPath, `{"service":"payment_risk",` + user + `}`, 403,
			`{"error":{"code":"forbidden","message":"asking for the service payment_risk takes the scope query or service:payment_risk; you have service:login_risk"}}`},
		{"a feature of another service", "a service:login_risk", "POST", queryPath, `{"features":["device_tx_7d"],` + device + `}`, 403,
			`{"error":{"code":"forbidden","message":"asking for the feature device_tx_7d takes the scope query or service:payment_risk; you have service:login_risk","feature":"device_tx_7d"}}`},
		{"Feast's format", "a service:payment_risk", "POST", "/get-online-features", `{"features":["v:device_tx_7d"],"entities":{"device_id":["d1"]}}`, 200, ""},
		{"Feast's format, another service", "a service:login_risk", "POST", "/get-online-features", `{"feature_service":"payment_risk","entities":{"device_tx_7d":["d1"]}}`, 403,
			`"{\"module\":\"feast.errors\",\"class\":\"FeastError\",\"message\":\"asking for the service payment_risk takes the scope query or service:payment_risk; you have service:login_risk\",\"code\":\"forbidden\"}"`},
		{"Feast's format, another feature", "a service:payment_risk", "POST", "/get-online-features", `{"features":["v:device_avg_7d"],"entities":{"device_id":["d1"]}}`, 403, ""},
		{"a hint", "a query", "POST", queryPath, `{"features":["device_avg_7"],` + device + `}`, 404,
			`{"error":{"code":"unknown_feature","message":"there is no feature \"device_avg_7\"; did you mean \"device_avg_7d\"?","feature":"device_avg_7","nearest":"device_avg_7d"}}`},
		{"no hint at a feature in no service", "a service:payment_risk", "POST", queryPath, `{"features":["device_avg_7"],` + device + `}`, 404,
			`{"error":{"code":"unknown_feature","message":"there is no feature \"device_avg_7\"; known are device_amount_7d, device_tx_7d, user_last","feature":"device_avg_7"}}`},
		{"the same with GET", "a service:payment_risk", "GET", "/v1/features/device_avg_7?device_id=d1", "", 404,
			`{"error":{"code":"unknown_feature","message":"there is no feature \"device_avg_7\"; known are device_amount_7d, device_tx_7d, user_last","feature":"device_avg_7"}}`},
		{"no hint at another service", "a service:login_risk", "POST", queryPath, `{"service":"payment-risk",` + user + `}`, 404,
			`{"error":{"code":"unknown_service","message":"there is no service \"payment-risk\""}}`},
		{"no hint at the service of a name", "a service:login_risk", "POST", queryPath, `{"features":["payment_risk"],` + user + `}`, 404,
			`{"error":{"code":"unknown_feature","message":"there is no feature \"payment_risk\"","feature":"payment_risk"}}`},
		{"all features", "a query", "POST", queryPath, `{"features":["device_avg_7d"],` + device + `}`, 200, ""},
		{"the catalogue", "a query", "GET", "/v1/features", "", 200, ""},
		{"the status", "a query service:payment_risk", "GET", "/v1/status", "", 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/status takes the scope operator; you have query service:payment_risk"}}`},
		{"the status of an operator", "a operator", "GET", "/v1/status", "", 200, ""},
		{"the definitions", "a query service:payment_risk", "GET", "/v1/definitions", "", 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/definitions takes the scope author; you have query service:payment_risk"}}`},
		{"the definitions of an author", "a author", "GET", "/v1/definitions", "", 200, ""},
		{"a preview", "a query service:payment_risk", "POST", "/v1/preview", `{"text":""}`, 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/preview takes the scope author; you have query service:payment_risk"}}`},
		{"a preview of an author", "a author", "POST", "/v1/preview", `{"text":""}`, 200, ""},
		{"dead letters", "a query service:payment_risk", "GET", "/v1/dead-letters", "", 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/dead-letters takes the scope operator; you have query service:payment_risk"}}`},
		{"the greatest keys", "a query service:payment_risk", "GET", "/v1/greatest-keys", "", 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/greatest-keys takes the scope operator; you have query service:payment_risk"}}`},
		{"the busiest entities", "a query", "GET", "/v1/busiest", "", 403,
			`{"error":{"code":"forbidden","message":"asking for /v1/busiest takes the scope operator; you have query"}}`},
		{"dead letters of an author", "a author", "GET", "/v1/dead-letters", "", 403, ""},
		{"a preview of an operator", "a operator", "POST", "/v1/preview", `{"text":""}`, 403, ""},
		{"the greatest keys of Prometheus", "a metrics", "GET", "/v1/greatest-keys", "", 403, ""},
		{"the greatest keys of an operator", "a operator", "GET", "/v1/greatest-keys", "", 200, ""},
		{"an operator's question", "a operator", "POST", queryPath, `{"features":["device_avg_7d"],` + device + `}`, 403,
			`{"error":{"code":"forbidden","message":"asking for features takes the scope query or service:NAME; you have operator"}}`},
		{"everything without scopes", "a", "GET", "/v1/status", "", 200, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := newHandler(&fakeReader{states: stored()}, func(c *setup) { as(clientOf(t, test.client))(&c.Access) })
			w := askWithToken(t, h, test.method, test.target, test.body)
			if w.Code != test.status {
				t.Fatalf("status %d, want %d: %s", w.Code, test.status, w.Body)
			}
			if got := strings.TrimSpace(w.Body.String()); test.want != "" && got != test.want {
				t.Errorf("\ngot  %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestMetricsTakeAScope(t *testing.T) {
	for client, want := range map[string]int{"a query": http.StatusForbidden, "a operator": http.StatusForbidden, "a metrics": http.StatusOK} {
		h := newHandler(&fakeReader{}, func(c *setup) { as(clientOf(t, client))(&c.Access) })
		r, w := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
		r.Header.Set("Authorization", "Bearer "+goodToken)
		if h.ServeHTTP(w, r); w.Code != want {
			t.Errorf("%s: status %d, want %d", client, w.Code, want)
		}
	}
}

// A client that may ask about one service sees only that service.
func TestCatalogueOfAService(t *testing.T) {
	h := newHandler(&fakeReader{}, func(c *setup) { as(clientOf(t, "a service:payment_risk"))(&c.Access) })
	var shown catalogue.Catalogue
	if err := json.Unmarshal(askWithToken(t, h, "GET", "/v1/features", "").Body.Bytes(), &shown); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range shown.Features {
		names = append(names, f.Name)
		for _, s := range f.Series {
			if len(s.SharedWith) > 0 {
				t.Errorf("%s shares a series with %v, which are in no service", f.Name, s.SharedWith)
			}
		}
	}
	if got, want := strings.Join(names, " "), "device_amount_7d device_tx_7d user_last"; got != want {
		t.Errorf("features %s, want %s", got, want)
	}
	if len(shown.Services) != 1 || len(shown.Streams) != 1 {
		t.Errorf("services %v, streams %v; want one of each", shown.Services, shown.Streams)
	}
	h = newHandler(&fakeReader{}, func(c *setup) { as(clientOf(t, "a service:other"))(&c.Access) })
	if got, want := strings.TrimSpace(askWithToken(t, h, "GET", "/v1/features", "").Body.String()), `{"features":[],"services":[],"streams":[],"lists":[]}`; got != want {
		t.Errorf("with the scope of another service:\ngot  %s\nwant %s", got, want)
	}
}

func TestTokenIssuerUnavailable(t *testing.T) {
	h := newHandler(&fakeReader{}, func(c *setup) {
		c.Access.Identify = func(context.Context, string) (*credentials.Client, error) { return nil, credentials.ErrIssuerAway }
	})
	w := askWithToken(t, h, "GET", "/v1/features", "")
	want := `{"error":{"code":"issuer_unavailable","message":"the token cannot be verified now: its issuer does not answer"}}`
	if got := strings.TrimSpace(w.Body.String()); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") != "1" || got != want {
		t.Errorf("%d, Retry-After %q, %s; want 503, 1, %s", w.Code, w.Header().Get("Retry-After"), got, want)
	}
	h = newHandler(&fakeReader{}, func(c *setup) {
		c.Access.Identify = func(context.Context, string) (*credentials.Client, error) {
			return nil, errors.New("the token expired at noon")
		}
	})
	if w := askWithToken(t, h, "GET", "/v1/features", ""); w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), "the token expired at noon") {
		t.Errorf("got %d %s, want 401 and the reason", w.Code, w.Body)
	}
}

// Each minute the log states how much each client asked, but not about which entities.
func TestAudit(t *testing.T) {
	var log bytes.Buffer
	audit := &access.Audit{}
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		as(clientOf(t, "payments service:payment_risk"))(&c.Access)
		c.Access.Audit = audit
	})
	audit.Log(logTo(&log), noon)
	askWithToken(t, h, "POST", queryPath, `{"features":["device_tx_7d","device_amount_7d"],"entities":[{"device_id":"d1"},{"device_id":"d2"},{"device_id":"d3"}]}`)
	askWithToken(t, h, "POST", queryPath, `{"features":["device_tx_7d"],"entities":[{"device_id":"d1"}]}`)
	askWithToken(t, h, "POST", queryPath, `{"features":["device_avg_7d"],"entities":[{"device_id":"d1"}]}`)
	askWithToken(t, h, "GET", "/v1/features", "")
	audit.Log(logTo(&log), noon.Add(59*time.Second))
	if log.Len() > 0 {
		t.Errorf("logged before the minute was over: %s", &log)
	}
	audit.Log(logTo(&log), noon.Add(time.Minute))
	if got, want := log.String(), `level=INFO msg="a client asked" client=payments questions=3 refused=1 entities=4 values=7 over=1m0s`+"\n"; !strings.HasSuffix(got, want) {
		t.Errorf("\ngot  %s\nwant %s", got, want)
	}
	log.Reset()
	audit.Log(logTo(&log), noon.Add(2*time.Minute))
	if log.Len() > 0 {
		t.Errorf("logged after a minute without questions: %s", &log)
	}
}

// A question that is refused while it is decoded gets its refusal and is counted.
func TestAuditOfRefusals(t *testing.T) {
	for body, want := range map[string]string{
		`{"features":["device_tx_7d","device_tx_8d"],"entities":[{"device_id":"d1"}]}`:          `{"error":{"code":"unknown_feature",`,
		`{"features":["device_tx_7d"],"service":"risk","entities":[{"device_id":"d1"}]}`:        `{"error":{"code":"unknown_service",`,
		`{"features":["device_tx_7d"],"members":["u1"],"entities":[{"device_id":"d1"}]}`:        `{"error":{"code":"no_members",`,
		`{"features":["device_tx_7d","user_last"],"members":1,"entities":[{"device_id":"d1"}]}`: `{"error":{"code":"wrong_type",`,
	} {
		var log bytes.Buffer
		audit := &access.Audit{}
		h := newHandler(&fakeReader{}, func(c *setup) {
			as(clientOf(t, "payments"))(&c.Access)
			c.Access.Audit = audit
		})
		if w := askWithToken(t, h, "POST", queryPath, body); !strings.HasPrefix(w.Body.String(), want) {
			t.Errorf("%s:\ngot  %d %s\nwant %s", body, w.Code, w.Body, want)
		}
		audit.Flush(logTo(&log), noon)
		if want := "client=payments questions=1 refused=1 entities=0 values=0 "; !strings.Contains(log.String(), want) {
			t.Errorf("%s:\nlogged %s\nwant %s", body, &log, want)
		}
	}
}

// If only certificates are required, they identify the client, whose scopes go by its name.
func TestAuditOfCertificates(t *testing.T) {
	var log bytes.Buffer
	audit := &access.Audit{}
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		c.Access = access.Rules{Certificate: true, Audit: audit, Named: func(name string) credentials.Scopes {
			return map[string]*credentials.Client{"engine-1": clientOf(t, "a query")}[name].Scopes
		}}
	})
	r, w := httptest.NewRequest("GET", "/v1/features/device_tx_7d?device_id=d1", nil), httptest.NewRecorder()
	r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{{Subject: pkix.Name{CommonName: "engine-1"}}}}}
	if h.ServeHTTP(w, r); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	audit.Flush(logTo(&log), noon)
	if !strings.Contains(log.String(), "client=engine-1 questions=1 ") {
		t.Errorf("the log does not name the client of the certificate: %s", &log)
	}
}

// Only a limited number of an issuer's names are distinguished; the others are counted together.
func TestAuditOfManyClients(t *testing.T) {
	var log bytes.Buffer
	audit := &access.Audit{}
	for i := range 1500 {
		audit.Count(fmt.Sprint("client-", i), 1, 1, false)
	}
	audit.Flush(logTo(&log), noon)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if want := "client=(others) questions=500 "; len(lines) != 1001 || !strings.Contains(log.String(), want) {
		t.Errorf("%d lines, want 1001, one of them with %s", len(lines), want)
	}
}
