package auth

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

// These are the client that an Issuer knows, and the audience of its tokens.
const (
	IssuerClient   = "weir"
	IssuerSecret   = "correct horse"
	IssuerAudience = "kafka"
)

// Issuer issues tokens (JWT) for a client's ID and secret, as an OpenID Connect provider does.
type Issuer struct {
	URL, TokenURL, KeysURL string
	// Life is how long its tokens are valid.
	Life time.Duration

	key      atomic.Pointer[issuerKey]
	issued   atomic.Int64
	away     atomic.Bool
	keysSent atomic.Int64
}

// issuerKey is a signing key; tokens name it by its ID.
type issuerKey struct {
	*rsa.PrivateKey
	id string
}

// NewIssuer starts an issuer, which stops when the test ends. Its tokens are valid for an hour.
func NewIssuer(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{Life: time.Hour}
	i.NewKey(t)
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", i.give)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.away.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	i.URL, i.TokenURL, i.KeysURL = server.URL, server.URL+"/token", server.URL+"/keys"
	return i
}

// NewKey makes the issuer sign with a new key and forget the old one.
func (i *Issuer) NewKey(t testing.TB) {
	t.Helper()
	const bits = 2048
	key, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		t.Fatal(err)
	}
	i.key.Store(&issuerKey{key, fmt.Sprint(time.Now().UnixNano())})
}

// SetAway makes the issuer answer like a proxy whose server is down.
func (i *Issuer) SetAway(away bool) { i.away.Store(away) }

// KeysSent returns how often the keys were fetched.
func (i *Issuer) KeysSent() int { return int(i.keysSent.Load()) }

// Issued returns how many tokens were issued.
func (i *Issuer) Issued() int { return int(i.issued.Load()) }

// Token returns a token for a subject.
func (i *Issuer) Token(subject string) string {
	now := time.Now()
	return i.Sign(map[string]any{
		"iss": i.URL, "sub": subject, "aud": IssuerAudience, "iat": now.Unix(), "exp": now.Add(i.Life).Unix(), "scope": "events",
	})
}

// Sign returns a token with the claims.
func (i *Issuer) Sign(claims map[string]any) string {
	key := i.key.Load()
	text := encodeJSON(map[string]any{"alg": "RS256", "typ": "JWT", "kid": key.id}) + "." + encodeJSON(claims)
	hash := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key.PrivateKey, crypto.SHA256, hash[:])
	if err != nil {
		panic(err) // cannot happen: the key fits the algorithm
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"issuer":%q,"token_endpoint":%q,"jwks_uri":%q,"id_token_signing_alg_values_supported":["RS256"]}`, i.URL, i.TokenURL, i.KeysURL)
}

func (i *Issuer) give(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	id, secret, ok := r.BasicAuth()
	if !ok {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	if id != IssuerClient || secret != IssuerSecret && secret != "correct+horse" { // RFC 6749: form-encoded in the header
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":"invalid_client","error_description":"no such client, or another secret"}`)
		return
	}
	i.issued.Add(1)
	fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":%d}`, i.Token(id), int(i.Life.Seconds()))
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.keysSent.Add(1)
	key := i.key.Load()
	number := func(n *big.Int) string { return base64.RawURLEncoding.EncodeToString(n.Bytes()) }
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"keys":[{"kty":"RSA","use":"sig","alg":"RS256","kid":%q,"n":%q,"e":%q}]}`,
		key.id, number(key.N), number(big.NewInt(int64(key.E))))
}

func encodeJSON(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // cannot happen: it can be encoded
	}
	return base64.RawURLEncoding.EncodeToString(text)
}
