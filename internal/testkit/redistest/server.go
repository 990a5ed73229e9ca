// Package redistest starts Redis servers for tests. See package testkit for where they come from.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/server"
)

// Server is one Redis server.
type Server struct {
	t      testing.TB // nil when shared
	addr   string
	secure string
	dir    string
	aof    bool
	runner server.Runner // nil if given
	origin string
}

// Options are the settings of a server that one test owns.
type Options struct {
	// AOF keeps the data over Kill: acknowledged writes are in the file. Without it the server
	// loses all data when it ends.
	AOF bool
	// Config adds settings of redis.conf, such as "maxmemory": "2mb".
	Config map[string]string
	// TLS, if set, signs the certificate of a second port at SecureAddr, which requires a client
	// certificate of the same authority.
	TLS *auth.Authority
	// OwnClock gives the server a clock that SetClock moves. It needs gcc, and no containers.
	OwnClock bool
}

var shared struct {
	sync.Mutex
	server *Server
}

// Shared returns the server that all tests of this binary share. A test uses only keys under its
// [testkit.Namespace] and never flushes.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		return shared.server
	}
	from := server.MustChoose(t, "Redis", server.FromEnvironment("WEIR_TEST_REDIS"), server.FromDocker(), server.FromMachine(lackLocal))
	r := &Server{}
	switch from {
	case server.Given:
		r.addr, r.origin = os.Getenv("WEIR_TEST_REDIS"), "WEIR_TEST_REDIS"
	case server.Docker:
		var err error
		if r.addr, r.origin, err = sharedInDocker(); err != nil {
			t.Fatal(err)
		}
	default:
		dir, err := server.SharedDir()
		if err != nil {
			t.Fatal(err)
		}
		if err := r.init(from, dir, Options{}); err != nil {
			t.Fatal(err)
		}
		server.AtEnd(r.runner.Remove)
	}
	if err := r.waitReady(); err != nil {
		t.Fatal(err)
	}
	server.Announce(t, true, "Redis from %s at %s", r.origin, r.addr)
	shared.server = r
	return r
}

// New starts a server that only this test uses, and may kill, start again and restore from older
// copies. It stops when the test ends.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	r := start(t, opts)
	server.Announce(t, false, "Redis from %s at %s", r.origin, r.addr)
	return r
}

func start(t testing.TB, opts Options, portDistances ...int) *Server {
	t.Helper()
	// A container must share the machine's network, to reach its replicas and the other members of
	// its cluster; a process is preferred if available.
	offers := []server.Offer{server.FromMachine(lackLocal), server.FromDocker()}
	if opts.TLS != nil || opts.OwnClock {
		offers = offers[:1] // the files must be on this machine
	}
	from := server.MustChoose(t, "Redis", offers...)
	r := &Server{t: t}
	if err := r.init(from, t.TempDir(), opts, portDistances...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.runner.Remove)
	if err := r.waitReady(); err != nil {
		t.Fatal(err)
	}
	return r
}

func lackLocal() error { return server.LackCommand("redis-server", "Redis 6.2 or later") }

// init chooses a port and starts the server in dir.
func (r *Server) init(from server.Origin, dir string, opts Options, portDistances ...int) error {
	port, err := server.FreePort(portDistances...)
	if err != nil {
		return err
	}
	r.addr, r.dir, r.aof = fmt.Sprintf("127.0.0.1:%d", port), dir, opts.AOF
	settings := map[string]string{
		"bind": "127.0.0.1",
		"port": fmt.Sprint(port),
		"save": "",
		// A copy of the data directory is consistent only while its files are just appended to.
		"auto-aof-rewrite-percentage": "0",
		"appendonly":                  "no",
		// A replica's first synchronization need not wait for others.
		"repl-diskless-sync-delay": "0",
	}
	if opts.AOF {
		settings["appendonly"] = "yes"
	}
	if opts.TLS != nil {
		port, err := server.FreePort()
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
	if from == server.Docker {
		r.runner, r.origin, err = inDocker(dir, args)
		if err != nil {
			return err
		}
	} else {
		command := []string{"redis-server"}
		if opts.OwnClock {
			if command, err = r.withClock(); err != nil {
				return err
			}
		}
		args = append(command[1:], args...)
		r.runner, r.origin = server.NewProcess(dir, command[0], args...), "local redis-server"
	}
	if err := r.runner.Start(); err != nil {
		r.runner.Remove() // a container may be left over
		return fmt.Errorf("start Redis from %s: %w", r.origin, err)
	}
	return nil
}

// Addr returns the server's address, host:port.
func (r *Server) Addr() string { return r.addr }

// SecureAddr returns the address of the TLS port.
func (r *Server) SecureAddr() string { return r.secure }

// patience bounds a command to a server that runs. Usually it takes microseconds, but the machine may be busy, or write
// to a slow disk; and a command that times out is sent again, although the server may have done it.
const patience = 30 * time.Second

// Client returns a client of the server, which is closed when the test ends.
func (r *Server) Client(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: r.addr, DialTimeout: patience, ReadTimeout: patience, WriteTimeout: patience})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Kill ends the server with SIGKILL.
func (r *Server) Kill() {
	r.t.Helper()
	if err := r.runner.End(syscall.SIGKILL); err != nil {
		r.t.Fatal(err)
	}
}

// Pause suspends the server until Resume or Kill: its connections stay open, and it does not
// answer.
func (r *Server) Pause() { r.t.Helper(); r.signal(server.Pause) }

// Resume resumes the server after Pause.
func (r *Server) Resume() { r.t.Helper(); r.signal(server.Resume) }

func (r *Server) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.runner.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

// Start starts the server after Kill, at the same address with its files, and returns when it has
// loaded them. Like a supervisor it starts a server once more that ends: Redis 7 does so after it has cut what a crash
// has torn from a file before the last one.
func (r *Server) Start() {
	r.t.Helper()
	for last := false; ; last = true {
		if err := r.runner.Start(); err != nil {
			r.t.Fatal(err)
		}
		err := r.waitReady()
		if err == nil {
			return
		}
		if last || !strings.Contains(r.runner.Log(), "the truncated file is not the last file") {
			r.t.Fatal(err)
		}
	}
}

func (r *Server) waitReady() error {
	client := redis.NewClient(&redis.Options{Addr: r.addr, MaxRetries: -1})
	defer client.Close()
	return server.Await("Redis from "+r.origin, r.runner, func(ctx context.Context) error {
		reply, err := client.Ping(ctx).Result() // an error while data loads
		if err == nil && reply != "PONG" {
			err = errors.New(reply)
		}
		return err
	})
}
