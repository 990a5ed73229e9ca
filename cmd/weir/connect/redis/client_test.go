package redisconn

import (
	"crypto/tls"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit/auth"
)

func TestRedisOverTLSWithUser(t *testing.T) {
	authority := auth.NewAuthority(t)
	pair, err := tls.LoadX509KeyPair(authority.Issue("redis"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := miniredis.RunTLS(&tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	server.RequireUserAuth("weir", "hunter2")

	c := config.Default()
	c.Redis.Addresses = []string{server.Addr()}
	c.Redis.Username, c.Redis.Password = "weir", "hunter2"
	c.Redis.TLS = config.TLS{Enabled: true, CA: authority.CA, ServerName: "localhost"}
	client, err := Client(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error("the right authority and password are refused:", err)
	}

	c.Redis.TLS.CA = ""
	foreign, err := Client(c)
	if err != nil {
		t.Fatal(err)
	}
	defer foreign.Close()
	if err := foreign.Ping(t.Context()).Err(); err == nil {
		t.Error("a server whose authority is unknown is trusted")
	}

	c.Redis.TLS = config.TLS{Enabled: true, CA: authority.CA, ServerName: "localhost"}
	c.Redis.Password = "wrong"
	intruder, err := Client(c)
	if err != nil {
		t.Fatal(err)
	}
	defer intruder.Close()
	if err := intruder.Ping(t.Context()).Err(); err == nil {
		t.Error("a client without the right password is accepted")
	}
}

func TestRedisModes(t *testing.T) {
	for mode, want := range map[string]redis.UniversalClient{
		"single": &redis.Client{}, "sentinel": &redis.Client{}, "cluster": &redis.ClusterClient{},
	} {
		c := config.Default()
		c.Redis.Mode = mode
		if mode == "sentinel" {
			c.Redis.MasterName = "primary"
		}
		client, err := Client(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := reflect.TypeOf(client); got != reflect.TypeOf(want) {
			t.Errorf("mode %s makes a %v, want a %T", mode, got, want)
		}
		if single, ok := client.(*redis.Client); ok {
			want := map[string]string{"single": c.Redis.Addresses[0], "sentinel": "primary"}[mode]
			if got := single.Options().Addr; got != want {
				t.Errorf("messages in mode %s name the server %s, want %s", mode, got, want)
			}
		}
		_ = client.Close()
	}
}

// Replicas are read in the configured database, and for only part of the timeout, which leaves time
// for the master.
func TestRedisReplicas(t *testing.T) {
	c := config.Default()
	if none, err := replicaClient(c); none != nil || err != nil {
		t.Errorf("the default settings make the client of replicas %v, error %v; want neither", none, err)
	}
	replica := miniredis.RunT(t)
	c.Redis.ReadFrom, c.Redis.Replicas, c.Redis.DB = "replica", []string{replica.Addr()}, 3
	client, err := replicaClient(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	server, err := client.SlaveForKey(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Set(t.Context(), "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := replica.DB(3).Get("key"); got != "value" {
		t.Errorf("the replica's database 3 holds %q, %v", got, err)
	}
	if got := server.Options().ReadTimeout; got != c.Redis.ReadTimeout/4 {
		t.Errorf("the replica's read timeout is %v, want a quarter of %v", got, c.Redis.ReadTimeout)
	}
	c.Redis.TLS = config.TLS{Enabled: true, CA: "missing.pem"}
	if _, err := replicaClient(c); err == nil || err.Error() != "redis.tls.ca: open missing.pem: no such file or directory" {
		t.Errorf("the authorities' file is missing: got error %v", err)
	}
	for _, mode := range []string{"sentinel", "cluster"} {
		c := config.Default()
		c.Redis.Mode, c.Redis.ReadFrom, c.Redis.MasterName = mode, "replica", "primary"
		client, err := replicaClient(c)
		if err != nil {
			t.Fatal(err)
		}
		if o := client.Options(); !o.ReadOnly || (o.ClusterSlots != nil) != (mode == "sentinel") {
			t.Errorf("mode %s: unexpected options of the client of replicas %+v", mode, o)
		}
		_ = client.Close()
	}
}

// A question to a cluster has time left for the other masters if one hangs.
func TestQuestionTime(t *testing.T) {
	c := config.Default()
	for mode, want := range map[string]time.Duration{"single": c.API.Timeout, "sentinel": c.API.Timeout, "cluster": c.API.Timeout / 8} {
		c.Redis.Mode = mode
		if got := questionTime(c); got != want {
			t.Errorf("mode %s: a question waits %v for a master, want %v", mode, got, want)
		}
	}
}

// A login uses the password that is in the file at that time, without a restart.
func TestRedisPasswordThatChanges(t *testing.T) {
	file := filepath.Join(t.TempDir(), "password")
	rewrite := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("old\n")
	server := miniredis.RunT(t)
	server.RequireUserAuth("weir", "new")
	c := config.Default()
	c.Redis.Addresses = []string{server.Addr()}
	c.Redis.Username, c.Redis.Password, c.Redis.PasswordFile = "weir", "old", file
	client, err := Client(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if client.Ping(t.Context()).Err() == nil {
		t.Error("Redis accepts the old password")
	}
	rewrite("new\n")
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error("Redis refuses the new password:", err)
	}
}
