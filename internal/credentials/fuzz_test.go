package credentials_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// FuzzTokens reads any file of tokens: the first word of each line is then a token, and no error shows one.
func FuzzTokens(f *testing.F) {
	f.Add([]byte("# a comment\n8c1f6d0f8c1f6d0f  payments-engine  service:payment_risk\n51b0aa9751b0aa97\n"))
	f.Add([]byte("8c1f6d0f8c1f6d0f x query admin\n"))
	f.Add([]byte("short\n"))
	path := filepath.Join(f.TempDir(), "tokens")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		tokens, err := credentials.LoadTokens(path)
		for line := range strings.Lines(string(content)) {
			words := strings.Fields(line)
			if len(words) == 0 || words[0][0] == '#' {
				continue
			}
			if err == nil {
				if client, unknown := tokens.Identify(words[0]); unknown != nil || len(words) == 1 && !client.Scopes.Everything() {
					t.Fatalf("line %q: client %+v, error %v", line, client, unknown)
				}
			} else if len(words[0]) >= 16 && strings.Contains(strings.TrimPrefix(err.Error(), path), words[0]) {
				t.Fatalf("the error shows the token of line %q: %v", line, err)
			}
		}
	})
}

// FuzzClientsFile reads any file of the names of certificates: nobody has a scope that no line gives him.
func FuzzClientsFile(f *testing.F) {
	f.Add([]byte("payments-engine service:payment_risk\nprometheus metrics\n"))
	f.Add([]byte("a query\na query\n"))
	path := filepath.Join(f.TempDir(), "clients")
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		named, err := credentials.LoadNamed(path)
		if err != nil {
			return
		}
		given := map[string]string{}
		for line := range strings.Lines(string(content)) {
			if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' {
				given[words[0]] = " " + strings.Join(words[1:], " ") + " "
			}
		}
		for name, scopes := range given {
			if s := named.Scopes(name); s.Operator() && !strings.Contains(scopes, " operator ") || s.Everything() && !strings.Contains(scopes, " query ") {
				t.Errorf("%q has the scopes %v, and its line gives%s", name, s, scopes)
			}
		}
		if s := named.Scopes("somebody else"); s.Query() || s.Metrics() || s.Author() || s.Operator() {
			t.Errorf("a name that is in no line has the scopes %v", s)
		}
	})
}

// FuzzJSONWebTokens verifies any token: as it is, none is valid, since nobody has signed it; with its claims signed by the issuer,
// only what is for this server and has not expired.
func FuzzJSONWebTokens(f *testing.F) {
	provider := auth.NewIssuer(f)
	issuer := credentials.NewIssuer(credentials.IssuerConfig{URL: provider.URL, Audience: "weir", ScopeClaim: "scope", ScopePrefix: "weir:"})
	if err := issuer.Discover(f.Context()); err != nil {
		f.Fatal(err)
	}
	f.Add("eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.", `{"aud": "weir", "exp": 99999999999, "scope": "weir:query"}`)
	f.Add("a.b.c", `{"aud": ["weir", 7], "exp": -1e300, "scope": [["weir:operator"]], "nbf": "x"}`)
	f.Fuzz(func(t *testing.T, token, text string) {
		if client, err := issuer.Identify(t.Context(), token); err == nil {
			t.Fatalf("%q is a token of %+v", token, client)
		}
		claims := map[string]any{}
		if json.Unmarshal([]byte(text), &claims) != nil || claims == nil {
			return
		}
		if claims["iss"] == nil {
			claims["iss"] = provider.URL
		}
		client, err := issuer.Identify(t.Context(), provider.Sign(claims))
		if err != nil {
			return
		}
		aud, _ := json.Marshal(claims["aud"])
		expires, _ := claims["exp"].(float64)
		if claims["iss"] != provider.URL || !strings.Contains(string(aud), `"weir"`) || expires < float64(time.Now().Add(-time.Minute).Unix()) {
			t.Errorf("the claims %s make a client %+v", text, client)
		}
	})
}
