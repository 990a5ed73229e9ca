package credentials_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/credentials"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// clock is a clock that tests move.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

func newIssuer(t *testing.T, c *clock) (*auth.Issuer, *credentials.Issuer) {
	t.Helper()
	provider := auth.NewIssuer(t)
	issuer := credentials.NewIssuer(credentials.IssuerConfig{
		URL: provider.URL, Audience: "weir", ScopeClaim: "scope", ScopePrefix: "weir:", Now: c.now,
	})
	return provider, issuer
}

// claims returns the claims of a token that is valid for an hour, with some replaced.
func claims(provider *auth.Issuer, c *clock, others map[string]any) map[string]any {
	all := map[string]any{"iss": provider.URL, "sub": "payments", "aud": "weir", "exp": c.now().Add(time.Hour).Unix(), "scope": "openid weir:query"}
	maps.Copy(all, others)
	return all
}

func TestTokensOfAnIssuer(t *testing.T) {
	c := &clock{}
	provider, issuer := newIssuer(t, c)
	if err := issuer.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := auth.NewIssuer(t)
	expiry := c.now().Add(-time.Minute)
	for name, test := range map[string]struct {
		signs  *auth.Issuer
		claims map[string]any
		want   string
	}{
		"scopes as a text":        {provider, nil, "payments: query"},
		"scopes as a list":        {provider, map[string]any{"scope": []any{"weir:service:payment_risk", 7, "weir:operator", "weir:all"}}, "payments: operator service:payment_risk"},
		"scopes of others":        {provider, map[string]any{"scope": "query admin"}, "payments: none"},
		"no scopes":               {provider, map[string]any{"scope": nil}, "payments: none"},
		"one audience of several": {provider, map[string]any{"aud": []any{"kafka", "weir"}}, "payments: query"},
		"another audience":        {provider, map[string]any{"aud": "kafka"}, `the token is not valid here: expected audience "weir" got ["kafka"]`},
		"another issuer":          {provider, map[string]any{"iss": other.URL}, "the token is not valid here: id token issued by a different provider"},
		"another issuer's key":    {other, nil, "the token is not valid here: failed to verify signature"},
		"expired":                 {provider, map[string]any{"exp": expiry.Unix()}, "the token expired at " + expiry.UTC().Format(time.RFC3339)},
	} {
		client, err := issuer.Identify(t.Context(), test.signs.Sign(claims(provider, c, test.claims)))
		got := fmt.Sprint(err)
		if err == nil {
			got = fmt.Sprintf("%s: %v", client.Name, client.Scopes)
		}
		if !strings.HasPrefix(got, test.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
	if _, err := issuer.Identify(t.Context(), "a.b.c"); err == nil || !strings.HasPrefix(err.Error(), "the token is not valid here: ") {
		t.Errorf("a token that is no JSON web token: got error %v", err)
	}
}

// A verified token is valid without another check for a minute, but not beyond its own time. An unknown key makes the
// server fetch the issuer's keys again, and forget those that it has withdrawn.
func TestTokensAreVerifiedAgain(t *testing.T) {
	c := &clock{}
	provider, issuer := newIssuer(t, c)
	if err := issuer.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	long := provider.Sign(claims(provider, c, nil))
	short := provider.Sign(claims(provider, c, map[string]any{"exp": c.now().Add(30 * time.Second).Unix()}))
	valid := func(token string) bool {
		_, err := issuer.Identify(t.Context(), token)
		return err == nil
	}
	if !valid(long) || !valid(short) {
		t.Fatal("the tokens are not valid at first")
	}
	provider.NewKey(t) // withdraws the key of both
	c.advance(31 * time.Second)
	if !valid(long) || valid(short) {
		t.Errorf("after 31 s the tokens are valid: %v and %v, want only the first", valid(long), valid(short))
	}
	if !valid(provider.Sign(claims(provider, c, nil))) {
		t.Error("a token of the new key is not valid")
	}
	c.advance(30 * time.Second)
	if valid(long) {
		t.Error("a token is accepted more than a minute after its key was replaced")
	}
}

// Tokens with unknown keys do not make the server fetch the issuer's keys each time.
func TestIssuerKeysAreFetchedRarely(t *testing.T) {
	c := &clock{}
	provider, issuer := newIssuer(t, c)
	if err := issuer.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	forger := auth.NewIssuer(t)
	for range 20 {
		if _, err := issuer.Identify(t.Context(), forger.Sign(claims(provider, c, nil))); err == nil {
			t.Fatal("a forged token is accepted")
		}
	}
	if n := provider.KeysSent(); n != 1 {
		t.Errorf("the issuer was asked for its keys %d times, want once", n)
	}
}

func TestIssuerUnavailable(t *testing.T) {
	c := &clock{}
	provider, issuer := newIssuer(t, c)
	token := provider.Sign(claims(provider, c, nil))
	away := func() bool {
		_, err := issuer.Identify(t.Context(), token)
		return errors.Is(err, credentials.ErrIssuerAway)
	}
	provider.SetAway(true)
	want := "api.oidc.issuer: "
	if err := issuer.Discover(t.Context()); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Errorf("got %v, want %s…502 Bad Gateway", err, want)
	}
	if !away() {
		t.Error("a token is judged before the issuer is known")
	}
	provider.SetAway(false)
	c.advance(5 * time.Second)
	if err := issuer.Discover(t.Context()); err != nil {
		t.Fatal(err)
	}
	provider.SetAway(true) // before its keys are fetched
	if !away() {
		t.Error("a token is judged without keys")
	}
	provider.SetAway(false)
	c.advance(5 * time.Second)
	if client, err := issuer.Identify(t.Context(), token); err != nil || client.Name != "payments" {
		t.Errorf("the issuer is available again, but: %v", err)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if _, err := issuer.Identify(stopped, token); err != nil {
		t.Errorf("a token that was verified before is refused: %v", err)
	}
}
