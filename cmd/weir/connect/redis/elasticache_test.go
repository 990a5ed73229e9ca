package redisconn

import (
	"crypto/tls"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

// elastiCache is a server that accepts the tokens of a user.
type elastiCache struct {
	*miniredis.Miniredis
	t          *testing.T
	encryption *tls.Config
	cache      auth.ElastiCache
	logins     atomic.Int32
}

func (e *elastiCache) start() {
	e.t.Helper()
	if err := e.StartTLS(e.encryption); err != nil {
		e.t.Fatal(err)
	}
	e.RequireUserAuth(e.cache.User, "no token yet")
	e.Server().SetPreHook(func(p *server.Peer, command string, args ...string) bool {
		at := slices.IndexFunc(append([]string{command}, args...), func(word string) bool { return strings.EqualFold(word, "AUTH") })
		if at < 0 {
			return false
		}
		user, token := args[at], args[at+1]
		if err := e.cache.Verify(user, token, time.Now()); err != nil {
			p.WriteError("WRONGPASS " + err.Error())
			return true
		}
		e.logins.Add(1)
		e.RequireUserAuth(user, token)
		return false
	})
}

// restart ends all connections.
func (e *elastiCache) restart() {
	e.t.Helper()
	e.Close()
	e.start()
}

// Each connection to ElastiCache logs in with a token of its own, also after the server has ended all connections, as
// it does after 12 hours.
func TestLoginAtElastiCache(t *testing.T) {
	auth.UseAWS(t, "eu-west-1")
	authority := auth.NewAuthority(t)
	pair, err := tls.LoadX509KeyPair(authority.Issue("redis"))
	if err != nil {
		t.Fatal(err)
	}
	e := &elastiCache{
		Miniredis: miniredis.NewMiniRedis(), t: t, encryption: &tls.Config{Certificates: []tls.Certificate{pair}},
		cache: auth.ElastiCache{Cache: "payments", Region: "eu-west-1", User: "weir"},
	}
	e.start()
	t.Cleanup(e.Close)
	for _, mode := range []string{"single", "cluster"} {
		c := config.Default()
		c.Redis.Mode, c.Redis.Addresses, c.Redis.Username = mode, []string{e.Addr()}, "weir"
		c.Redis.ElastiCache = config.ElastiCache{Cache: "payments"}
		c.Redis.TLS = config.TLS{Enabled: true, CA: authority.CA, ServerName: "localhost"}
		options, err := Options(c)
		if err != nil {
			t.Fatal(err)
		}
		if longest := options.ConnMaxLifetime + options.ConnMaxLifetimeJitter; longest == 0 || longest >= 12*time.Hour {
			t.Errorf("a connection may live for %v, want less than the 12 hours after which the server ends it", longest)
		}
		client, err := Client(c)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		for _, when := range []string{"at first", "after the server ended the connections"} {
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Errorf("%s, %s: %v", mode, when, err)
			}
			if e.logins.Swap(0) == 0 {
				t.Errorf("%s, %s: no client has logged in", mode, when)
			}
			e.restart()
		}
		c.Redis.ElastiCache.Cache = "other"
		stranger, err := Client(c)
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if err := stranger.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), `host is "other", want "payments"`) {
			t.Errorf("%s, with the token of another cache: got error %v", mode, err)
		}
	}
}
