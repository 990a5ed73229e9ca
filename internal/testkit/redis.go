package testkit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// RedisServer is one Redis server.
type RedisServer struct {
	t      testing.TB // nil when shared
	addr   string
	secure string
	dir    string
	aof    bool
	runner runner // nil when given
	origin string
}

// RedisOptions are the settings of a server of one's own.
type RedisOptions struct {
	// AOF keeps the data over Kill: a write that was answered is in the file.
	// Without it the server forgets everything when it ends.
	AOF bool
	// Config are further settings of redis.conf, such as "maxmemory": "2mb".
	Config map[string]string
	// TLS, where set, signs the certificate of a second port, at SecureAddr, which
	// asks clients for one of the same authority.
	TLS *Authority
}

var sharedRedis struct {
	sync.Mutex
	server *RedisServer
}

// Redis returns the server that all tests of this binary share. A test keeps
// to keys under its [Namespace] and never flushes.
func Redis(t testing.TB) *RedisServer {
	t.Helper()
	sharedRedis.Lock()
	defer sharedRedis.Unlock()
	if sharedRedis.server != nil {
		return sharedRedis.server
	}
	from := mustChoose(t, "Redis", lackGiven("WEIR_TEST_REDIS"), lackDocker(), offer{local, lackLocalRedis})
	r := &RedisServer{}
	switch from {
	case given:
		r.addr, r.origin = os.Getenv("WEIR_TEST_REDIS"), "WEIR_TEST_REDIS"
	case docker:
		var err error
		if r.addr, r.origin, err = moduleRedis(); err != nil {
			t.Fatal(err)
		}
	default:
		dir, err := sharedDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.init(from, dir, ephemeralPorts, RedisOptions{}); err != nil {
			t.Fatal(err)
		}
		atEnd(r.runner.remove)
	}
	if err := r.waitReady(); err != nil {
		t.Fatal(err)
	}
	announce(t, true, "Redis from %s at %s", r.origin, r.addr)
	sharedRedis.server = r
	return r
}

// NewRedis starts a server of the test's own, to kill, start again and put
// back to older copies. It ends with the test.
func NewRedis(t testing.TB, opts RedisOptions) *RedisServer {
	t.Helper()
	r := newRedis(t, ephemeralPorts, opts)
	announce(t, false, "Redis from %s at %s", r.origin, r.addr)
	return r
}

func newRedis(t testing.TB, portLimit int, opts RedisOptions) *RedisServer {
	t.Helper()
	// A container has the machine's network here, to meet its replicas and
	// the other members of its cluster; a process is nearer when there is one.
	offers := []offer{{local, lackLocalRedis}, lackDocker()}
	if opts.TLS != nil {
		offers = offers[:1] // the files are here
	}
	from := mustChoose(t, "Redis", offers...)
	r := &RedisServer{t: t}
	if err := r.init(from, t.TempDir(), portLimit, opts); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.runner.remove)
	if err := r.waitReady(); err != nil {
		t.Fatal(err)
	}
	return r
}

func lackLocalRedis() error { return lackCommand("redis-server", "Redis 6.2 or later") }

// init takes a port and starts the server on dir.
func (r *RedisServer) init(from source, dir string, portLimit int, opts RedisOptions) error {
	port, err := freePort(portLimit)
	if err != nil {
		return err
	}
	r.addr, r.dir, r.aof = fmt.Sprintf("127.0.0.1:%d", port), dir, opts.AOF
	settings := map[string]string{
		"bind": "127.0.0.1",
		"port": fmt.Sprint(port),
		"save": "",
		// A copy of the data directory is consistent as long as its files
		// are only appended to.
		"auto-aof-rewrite-percentage": "0",
		"appendonly":                  "no",
		// A replica's first synchronisation need not wait for others.
		"repl-diskless-sync-delay": "0",
	}
	if opts.AOF {
		settings["appendonly"] = "yes"
	}
	if opts.TLS != nil {
		port, err := freePort(portLimit)
		if err != nil {
			return err
		}
		r.secure = fmt.Sprintf("127.0.0.1:%d", port)
		settings["tls-port"], settings["tls-ca-cert-file"] = fmt.Sprint(port), opts.TLS.CA
		settings["tls-cert-file"], settings["tls-key-file"] = opts.TLS.Issue("redis")
	}
	for k, v := range opts.Config {
		settings[k] = v
	}
	var args []string
	for k, v := range settings {
		args = append(args, "--"+k, v)
	}
	if from == docker {
		r.runner, r.origin, err = dockerRedis(dir, args)
		if err != nil {
			return err
		}
	} else {
		r.runner, r.origin = newProcess(dir, "redis-server", args...), "local redis-server"
	}
	if err := r.runner.start(); err != nil {
		r.runner.remove() // a container may be left of it
		return fmt.Errorf("start Redis from %s: %w", r.origin, err)
	}
	return nil
}

// Addr is the server's address, host:port.
func (r *RedisServer) Addr() string { return r.addr }

// SecureAddr is the address of the port with TLS.
func (r *RedisServer) SecureAddr() string { return r.secure }

// Client returns a client of the server's that is closed when the test ends.
func (r *RedisServer) Client(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: r.addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Kill ends the server with SIGKILL.
func (r *RedisServer) Kill() {
	r.t.Helper()
	if err := r.runner.end(syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// Pause stops the server in the midst of what it does, until Resume or Kill: its
// connections stand, and nothing comes back.
func (r *RedisServer) Pause() { r.t.Helper(); r.signal(sigPause) }

// Resume lets the server go on.
func (r *RedisServer) Resume() { r.t.Helper(); r.signal(sigResume) }

func (r *RedisServer) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.runner.signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// Start starts the server again after Kill, at the same address with what its
// files hold, and returns when it has loaded them.
func (r *RedisServer) Start() {
	r.t.Helper()
	if err := r.runner.start(); err != nil {
		r.t.Fatal(err)
	}
	if err := r.waitReady(); err != nil {
		r.t.Fatal(err)
	}
}

func (r *RedisServer) waitReady() error {
	client := redis.NewClient(&redis.Options{Addr: r.addr, MaxRetries: -1})
	defer client.Close()
	return waitServer("Redis from "+r.origin, r.runner, func(ctx context.Context) error {
		reply, err := client.Ping(ctx).Result() // an error while it loads its data
		if err == nil && reply != "PONG" {
			err = errors.New(reply)
		}
		return err
	})
}
