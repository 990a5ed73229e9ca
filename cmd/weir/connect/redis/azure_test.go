package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// azure is a Redis whose user's passwords are the tokens that were issued.
type azure struct {
	*auth.Entra
	*redistest.Server
	t         *testing.T
	authority *auth.Authority
	tokens    chan string
}

func newAzure(t *testing.T) azure {
	authority := auth.NewAuthority(t)
	a := azure{auth.NewEntra(t), redistest.New(t, redistest.Options{TLS: authority}), t, authority, make(chan string, 1)}
	a.OnToken = func(token string) {
		a.change("on", ">"+token, "~*", "+@all")
		select {
		case a.tokens <- token:
		default: // the first one only
		}
	}
	return a
}

// change changes the user. A token that is requested while the test ends changes nothing.
func (a azure) change(rules ...string) {
	err := a.Client(a.t).ACLSetUser(context.Background(), "weir", rules...).Err()
	if err != nil && a.t.Context().Err() == nil {
		a.t.Error(err)
	}
}

// open returns a client that requests tokens at short intervals.
func (a azure) open() *redis.Client {
	a.t.Helper()
	c := config.Default()
	c.Redis.Addresses, c.Redis.Username = []string{a.SecureAddr()}, "weir"
	c.Redis.Azure = config.Azure{Identity: "managed", ClientID: fmt.Sprint("of this run: ", time.Now().UnixNano())}
	c.Redis.TLS = config.TLS{Enabled: true, CA: a.authority.CA, ServerName: "localhost"}
	c.Redis.TLS.Cert, c.Redis.TLS.Key = a.authority.Issue("weir")
	options, err := Options(c)
	if err != nil {
		a.t.Fatal(err)
	}
	options.StreamingCredentialsProvider.(*renewal).pause = 100 * time.Millisecond
	client := redis.NewClient(options.Simple())
	a.t.Cleanup(func() { _ = client.Close() })
	return client
}

// logins returns how often an open connection logged in again, and how often that failed.
func (a azure) logins() (all, failed int) {
	a.t.Helper()
	stats, err := a.Client(a.t).Info(a.t.Context(), "commandstats").Result()
	if err != nil {
		a.t.Fatal(err)
	}
	if _, after, found := strings.Cut(stats, "cmdstat_auth:calls="); found {
		_, failures, _ := strings.Cut(after, "failed_calls=")
		_, err := fmt.Sscanf(after, "%d", &all)
		_, err2 := fmt.Sscanf(failures, "%d", &failed)
		if err := errors.Join(err, err2); err != nil {
			a.t.Fatal(err)
		}
	}
	return all, failed
}

// An open connection logs in with the next token before its own expires, and stays open.
func TestLoginAtAzure(t *testing.T) {
	a := newAzure(t)
	a.Life = time.Minute // so that each request returns another token
	client := a.open()
	id, err := client.ClientID(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	a.change("<" + <-a.tokens) // it has expired
	testkit.Eventually(t, time.Minute, "the connection logs in again", func() (bool, string) {
		if err := client.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		n, failed := a.logins()
		return n-failed >= 3, fmt.Sprintf("%d logins, %d of them in vain, %d tokens", n, failed, a.Issued())
	})
	open, err := a.Client(t).ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(open, fmt.Sprintf("id=%d ", id)) {
		t.Errorf("connection %d was closed:\n%s", id, open)
	}
}

// Without a token there is no connection, and the error says why.
func TestAzureIsUnavailable(t *testing.T) {
	a := newAzure(t)
	a.SetAway(true)
	client := a.open()
	err := client.Ping(t.Context()).Err()
	if want := "redis.azure: no token of Microsoft Entra: 400 Bad Request"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	a.SetAway(false)
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error("Azure is available again, but:", err)
	}
}
