package redisconn

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Sentinels have a password of their own, read from its file at start.
func TestSentinelWithAPassword(t *testing.T) {
	master := redistest.New(t, redistest.Options{})
	testkit.Command(t, "redis-server", "Redis")
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	host, masterPort, err := net.SplitHostPort(master.Addr())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "sentinel.conf")
	write(file, fmt.Sprintf("bind 127.0.0.1\nport %d\ndir %s\nrequirepass of-the-sentinel\nsentinel monitor weir %s %s 1\n",
		port, dir, host, masterPort))
	testkit.Start(t, "redis-server", file, "--sentinel")

	password := filepath.Join(dir, "password")
	write(password, "of-the-sentinel\n")
	settings := filepath.Join(dir, "weir.yaml")
	write(settings, fmt.Sprintf("redis: {mode: sentinel, master_name: weir, addresses: [\"127.0.0.1:%d\"], sentinel_password_file: %s}\n", port, password))
	ping := func() error {
		c, err := config.Load(settings, nil)
		if err != nil {
			t.Fatal(err)
		}
		client, err := Client(c)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		return client.Ping(t.Context()).Err()
	}
	testkit.Eventually(t, time.Minute, "the master is found through its Sentinel", func() (bool, string) {
		err := ping()
		return err == nil, fmt.Sprint(err)
	})
	write(password, "another")
	if ping() == nil {
		t.Error("the Sentinel accepts a client without its password")
	}
}

// The replicas that Sentinels know are known although they are not connected.
func TestKnownReplicas(t *testing.T) {
	primary := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplica(t, primary.Addr())
	sentinel := redistest.NewSentinel(t, "weir", primary, 1)
	replica.Kill()
	c := config.Default()
	for mode, want := range map[string]int{"single": 2, "cluster": 0, "sentinel": 1} {
		c.Redis.Mode, c.Redis.MasterName, c.Redis.Replicas = mode, "weir", []string{"a:1", "b:1"}
		c.Redis.Addresses = []string{"127.0.0.1:1", sentinel.Addr()} // the first one does not answer
		if n, err := KnownReplicas(t.Context(), c); n != want || err != nil {
			t.Errorf("%s: %d replicas, error %v; want %d", mode, n, err, want)
		}
	}
	c.Redis.Mode, c.Redis.Addresses = "sentinel", []string{"127.0.0.1:1"}
	if n, err := KnownReplicas(t.Context(), c); err == nil {
		t.Errorf("without a Sentinel: %d replicas, want an error", n)
	}
}
