package testkit

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"
)

// The client that an Issuer knows, and whom its tokens are for.
const (
	IssuerClient   = "weir"
	IssuerSecret   = "correct horse"
	IssuerAudience = "kafka"
)

// Issuer gives tokens (JWT) for a client's id and secret, as an OpenID Connect provider does.
type Issuer struct {
	TokenURL, KeysURL string
	// Life is how long its tokens are valid.
	Life time.Duration

	key    *rsa.PrivateKey
	issued atomic.Int64
}

// NewIssuer starts an issuer, which ends with the test. Its tokens live for an hour.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key, Life: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", i.give)
	mux.HandleFunc("GET /keys", i.keys)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.TokenURL, i.KeysURL = server.URL+"/token", server.URL+"/keys"
	return i
}

// Issued is how many tokens it has given.
func (i *Issuer) Issued() int { return int(i.issued.Load()) }

// Token is a token for a subject.
func (i *Issuer) Token(subject string) string {
	now := time.Now()
	text := encodeJSON(map[string]any{"alg": "RS256", "typ": "JWT", "kid": "1"}) + "." + encodeJSON(map[string]any{
		"iss": i.TokenURL, "sub": subject, "aud": IssuerAudience, "iat": now.Unix(), "exp": now.Add(i.Life).Unix(), "scope": "events",
	})
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, hash[:])
	if err != nil {
		panic(err) // the key was made for this
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (i *Issuer) give(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	if id != IssuerClient || secret != IssuerSecret && secret != "correct+horse" { // RFC 6749 has them form-encoded in the header
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"no such client, or another secret"}`)
		return
	}
	i.issued.Add(1)
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, i.Token(id), int(i.Life.Seconds()))
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":"1","n":%q,"e":%q}]}`,
		number(i.key.N), number(big.NewInt(int64(i.key.E))))
}

func encodeJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // what is encoded here can be
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
