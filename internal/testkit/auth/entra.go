package auth

import (
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// These are the identity of a pod, and its proof.
const (
	EntraClient    = "11111111-2222-3333-4444-555555555555"
	EntraTenant    = "99999999-8888-7777-6666-555555555555"
	EntraAssertion = "the token of a service account"

	entraHeader = "proves that an app asks" // what the machine gives to its app
)

// Entra issues tokens for Redis as Microsoft Entra does: to a pod of AKS in exchange for the token of
// its service account, to any managed identity of an app at the address in its environment. Azure's library keeps a
// managed identity's tokens for the whole process, so each test needs an identity of its own.
type Entra struct {
	// Life is how long tokens are valid, and Refresh, if set, when Entra wants them to be replaced.
	Life, Refresh time.Duration
	// OnToken, if set, is called with each token before it is handed out.
	OnToken func(token string)

	server *httptest.Server
	mu     sync.Mutex
	issued int
	away   bool
}

// NewEntra starts an Entra, which stops when the test ends, and makes Azure's libraries find it in the environment. Its
// tokens are valid for an hour.
func NewEntra(t testing.TB) *Entra {
	t.Helper()
	e := &Entra{Life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /msi/token", e.managed)
	mux.HandleFunc("POST /"+EntraTenant+"/oauth2/v2.0/token", e.exchange)
	mux.HandleFunc("GET /common/discovery/instance", e.instance)
	mux.HandleFunc("GET /"+EntraTenant+"/v2.0/.well-known/openid-configuration", e.discovery)
	e.server = httptest.NewServer(mux)
	t.Cleanup(e.server.Close)
	file := filepath.Join(t.TempDir(), "assertion")
	if err := os.WriteFile(file, []byte(EntraAssertion), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{
		"IDENTITY_ENDPOINT": e.server.URL + "/msi/token", "IDENTITY_HEADER": entraHeader, "IDENTITY_SERVER_THUMBPRINT": "", "MSI_ENDPOINT": "", "IMDS_ENDPOINT": "",
		"AZURE_CLIENT_ID": EntraClient, "AZURE_TENANT_ID": EntraTenant, "AZURE_FEDERATED_TOKEN_FILE": file, "AZURE_AUTHORITY_HOST": "",
	} {
		t.Setenv(name, value)
	}
	return e
}

// Do answers a request to Entra's public address, in place of it.
func (e *Entra) Do(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = "http", e.server.Listener.Addr().String()
	return e.server.Client().Do(request)
}

// Issued returns how many tokens were issued.
func (e *Entra) Issued() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.issued
}

// SetAway makes Entra refuse all requests.
func (e *Entra) SetAway(away bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.away = away
}

func (e *Entra) managed(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Identity-Header") != entraHeader || r.FormValue("resource") != "https://redis.azure.com" {
		refuse(w)
		return
	}
	e.issue(w, cmp.Or(r.FormValue("client_id"), "machine"))
}

func (e *Entra) exchange(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_assertion") != EntraAssertion || r.FormValue("client_id") != EntraClient ||
		r.FormValue("grant_type") != "client_credentials" || r.FormValue("scope") != "https://redis.azure.com/.default openid offline_access profile" {
		refuse(w)
		return
	}
	e.issue(w, "pod")
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	fmt.Fprint(w, `{"error":"invalid_request","error_description":"AADSTS70021: no such identity\r\nTrace ID: 1"}`)
}

func (e *Entra) issue(w http.ResponseWriter, to string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if e.away {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"temporarily_unavailable","error_description":"come back later"}`)
		return
	}
	e.issued++
	token := fmt.Sprintf("token-%d-of-%s", e.issued, to)
	if e.OnToken != nil {
		e.OnToken(token)
	}
	refresh := ""
	if e.Refresh > 0 {
		refresh = fmt.Sprintf(`"refresh_in":%q,`, fmt.Sprint(int(e.Refresh.Seconds())))
	}
	fmt.Fprintf(w, `{"access_token":%q,%s"expires_in":"%d","expires_on":"%d","resource":"https://redis.azure.com","token_type":"Bearer"}`,
		token, refresh, int(e.Life.Seconds()), time.Now().Add(e.Life).Unix())
}

func (e *Entra) instance(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"tenant_discovery_endpoint":"https://login.microsoftonline.com/%s/v2.0/.well-known/openid-configuration",
		"metadata":[{"preferred_network":"login.microsoftonline.com","preferred_cache":"login.windows.net","aliases":["login.microsoftonline.com","login.windows.net"]}]}`,
		EntraTenant)
}

func (e *Entra) discovery(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	base := "https://login.microsoftonline.com/" + EntraTenant
	fmt.Fprintf(w, `{"issuer":"%[1]s/v2.0","authorization_endpoint":"%[1]s/oauth2/v2.0/authorize","token_endpoint":"%[1]s/oauth2/v2.0/token"}`, base)
}
