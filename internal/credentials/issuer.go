package credentials

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// ErrIssuerAway is the error for a token that cannot be verified, because its issuer's keys are
// unavailable.
var ErrIssuerAway = errors.New("the token cannot be verified now: its issuer does not answer")

// IssuerConfig defines which JSON web tokens are accepted, and how they are read.
type IssuerConfig struct {
	URL         string // of the issuer; its description is at /.well-known/openid-configuration below it
	Audience    string // the audience that its tokens must have
	ScopeClaim  string // the claim that lists scopes, as a text with spaces or as a list
	ScopePrefix string // what is before scopes in that claim; others are skipped
	TLS         *tls.Config
	Now         func() time.Time // time.Now if nil
}

// Issuer verifies the tokens of an OpenID Connect provider. It is safe for concurrent use.
type Issuer struct {
	config   IssuerConfig
	client   *http.Client
	verifier atomic.Pointer[verifier]

	mu       sync.Mutex
	verified map[[sha256.Size]byte]verified
}

// verifier is the result of discovery: the keys, and the verifier that uses them.
type verifier struct {
	keys *oidc.RemoteKeySet
	*oidc.IDTokenVerifier
}

// verified is a valid token, with the time until which it is not verified again.
type verified struct {
	client *Client
	until  time.Time
}

const (
	// believed is how long a verified token is not verified again.
	believed = time.Minute
	// maxVerified bounds the tokens that are cached.
	maxVerified = 10_000
	// issuerTimeout bounds a request to the issuer.
	issuerTimeout = 5 * time.Second
	// patience is how long a question waits for the keys that verify its token.
	patience = 2 * time.Second
)

// NewIssuer makes an issuer, which verifies nothing before Discover has succeeded.
func NewIssuer(c IssuerConfig) *Issuer {
	if c.Now == nil {
		c.Now = time.Now
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = c.TLS
	client := &http.Client{Timeout: issuerTimeout, Transport: &sparing{next: transport, now: c.Now, kept: map[string]*keptResponse{}}}
	return &Issuer{config: c, client: client, verified: map[[sha256.Size]byte]verified{}}
}

// Discover asks the issuer for its configuration. The keys themselves are fetched with the first token, and again when
// a token names an unknown one.
func (i *Issuer) Discover(ctx context.Context) error {
	ctx = oidc.ClientContext(ctx, i.client)
	provider, err := oidc.NewProvider(ctx, i.config.URL)
	if err != nil {
		return fmt.Errorf("api.oidc.issuer: %w", err)
	}
	var discovery struct {
		Keys string `json:"jwks_uri"`
	}
	if err := provider.Claims(&discovery); err != nil {
		return fmt.Errorf("api.oidc.issuer: %w", err)
	}
	i.verifier.Store(&verifier{
		oidc.NewRemoteKeySet(ctx, discovery.Keys), provider.Verifier(&oidc.Config{ClientID: i.config.Audience, Now: i.config.Now}),
	})
	return nil
}

// IsJWT reports whether a token has the form of a JSON web token.
func IsJWT(token string) bool { return strings.Count(token, ".") == 2 }

// Identify identifies the owner of a token and its scopes. The error is ErrIssuerAway, or says why
// the token is rejected.
func (i *Issuer) Identify(ctx context.Context, token string) (*Client, error) {
	hash := sha256.Sum256([]byte(token))
	if client := i.remembered(hash); client != nil {
		return client, nil
	}
	verifier := i.verifier.Load()
	if verifier == nil {
		return nil, ErrIssuerAway
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	// Verify does not distinguish unavailable keys from a wrong signature.
	if _, err := verifier.keys.VerifySignature(ctx, token); isAway(err) {
		return nil, ErrIssuerAway
	}
	t, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, why(err)
	}
	claims := map[string]any{}
	if err := t.Claims(&claims); err != nil {
		return nil, why(err)
	}
	client := &Client{Name: t.Subject, Scopes: i.scopes(claims[i.config.ScopeClaim])}
	i.remember(hash, verified{client, t.Expiry})
	return client, nil
}

func isAway(err error) bool {
	var away *awayError
	return errors.As(err, &away) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// why returns why a token is rejected.
func why(err error) error {
	var expired *oidc.TokenExpiredError
	if errors.As(err, &expired) {
		return fmt.Errorf("the token expired at %s", expired.Expiry.UTC().Format(time.RFC3339))
	}
	return fmt.Errorf("the token is not valid here: %s", strings.TrimPrefix(err.Error(), "oidc: "))
}

// scopes returns the scopes in a claim. Scopes of other servers are skipped.
func (i *Issuer) scopes(claim any) Scopes {
	var words []string
	switch claim := claim.(type) {
	case string:
		words = strings.Fields(claim)
	case []any:
		for _, word := range claim {
			if text, ok := word.(string); ok {
				words = append(words, text)
			}
		}
	}
	var s Scopes
	for _, word := range words {
		if scope, ours := strings.CutPrefix(word, i.config.ScopePrefix); ours {
			s.add(scope)
		}
	}
	return s
}

// remembered returns the client of a token that was verified recently.
func (i *Issuer) remembered(hash [sha256.Size]byte) *Client {
	i.mu.Lock()
	defer i.mu.Unlock()
	v, ok := i.verified[hash]
	if !ok || !i.config.Now().Before(v.until) {
		return nil
	}
	return v.client
}

func (i *Issuer) remember(hash [sha256.Size]byte, v verified) {
	if until := i.config.Now().Add(believed); until.Before(v.until) {
		v.until = until
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.verified) >= maxVerified {
		clear(i.verified)
	}
	i.verified[hash] = v
}
