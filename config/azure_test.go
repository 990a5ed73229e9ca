package config

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/weir-stream/weir/internal/testkit/auth"
)

// The identities of a pod and of a machine get tokens for Redis, which are used until they are about to expire.
func TestTokensForAzure(t *testing.T) {
	for name, c := range map[string]struct {
		settings Azure
		of       string
	}{
		"a pod":                         {Azure{Identity: "workload"}, "pod"},
		"a pod, named":                  {Azure{Identity: "workload", ClientID: auth.EntraClient}, "pod"},
		"a machine":                     {Azure{Identity: "managed"}, "machine"},
		"one of a machine's identities": {Azure{Identity: "managed", ClientID: "one"}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			entra := auth.NewEntra(t)
			tokens, err := c.settings.tokens(azcore.ClientOptions{Transport: entra})
			if err != nil {
				t.Fatal(err)
			}
			begin := time.Now()
			for range 2 {
				token, err := tokens(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if !strings.HasSuffix(token.Password, "-of-"+c.of) || token.Expires.Before(begin.Add(59*time.Minute)) || token.Expires.Sub(token.Replace) != azureReserve {
					t.Errorf("unexpected token %+v", token)
				}
			}
			if n := entra.Issued(); n > 1 {
				t.Errorf("%d tokens were issued for one hour, want 1", n)
			}
		})
	}
}

// A token that is about to expire is not used again, and Entra may say when to replace one.
func TestTokensThatExpire(t *testing.T) {
	for _, identity := range []string{"workload", "managed"} {
		entra := auth.NewEntra(t)
		entra.Life, entra.Refresh = 4*time.Minute, time.Minute
		tokens, err := Azure{Identity: identity, ClientID: auth.EntraClient}.tokens(azcore.ClientOptions{Transport: entra})
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		for range 2 {
			token, err := tokens(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if after := token.Replace.Sub(begin); after < 59*time.Second || after > 2*time.Minute {
				t.Errorf("%s: a token is replaced after %v, want between 59s and 2m", identity, after)
			}
		}
		if n := entra.Issued(); n != 2 {
			t.Errorf("%s: %d tokens were issued, want 2", identity, n)
		}
	}
}

func TestAzureRefuses(t *testing.T) {
	entra := auth.NewEntra(t)
	entra.SetAway(true)
	for _, identity := range []string{"workload", "managed"} {
		tokens, err := Azure{Identity: identity, ClientID: "refused"}.tokens(azcore.ClientOptions{Transport: entra})
		if err != nil {
			t.Fatal(err)
		}
		_, err = tokens(t.Context())
		if want := "redis.azure: no token of Microsoft Entra: 400 Bad Request"; err == nil || err.Error() != want {
			t.Errorf("\ngot  %v\nwant %s", err, want)
		}
	}
}
