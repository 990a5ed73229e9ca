package igniteconn

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/operate/doctor"
	"github.com/weir-stream/weir/store/ignite/thin"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// settings are those of a namespace on a cluster.
func settings(t *testing.T, c *ignitetest.Cluster) *config.Config {
	cfg := config.Default()
	cfg.Store.Type, cfg.Namespace, cfg.Shards = "ignite", testkit.Namespace(t), 2
	cfg.Ignite.Addresses, cfg.Ignite.DialTimeout, cfg.Ignite.RequestTimeout = c.Addresses(), 5*time.Second, 10*time.Second
	return cfg
}

// open opens the store, and makes the namespace.
func open(t *testing.T, cfg *config.Config) *Deployment {
	t.Helper()
	d, err := Open(cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

// failure returns what weir doctor says is wrong.
func failure(t *testing.T, cfg *config.Config) string {
	t.Helper()
	for _, f := range Check(t.Context(), cfg) {
		if f.Verdict == doctor.Fail {
			return f.Found
		}
	}
	return ""
}

// A cluster that asks for certificates and passwords is used with them, and says what is wrong without. Its state outlives all of
// its nodes.
func TestSecured(t *testing.T) {
	authority := auth.NewAuthority(t)
	c := ignitetest.NewWith(t, &ignitetest.Options{Nodes: 1, Authority: authority, Persistent: true})
	cfg := settings(t, c)
	cfg.Ignite.Username, cfg.Ignite.Password = ignitetest.User, ignitetest.Password
	cfg.Ignite.TLS = config.TLS{Enabled: true, CA: c.CA}
	cfg.Ignite.TLS.Cert, cfg.Ignite.TLS.Key = authority.Issue("weir")
	const inactive = "50000: Can not perform the operation because the cluster is inactive."
	if wrong := failure(t, cfg); !strings.HasPrefix(wrong, inactive) {
		t.Errorf("before the cluster is activated: %q, want %q", wrong, inactive)
	}
	if err := c.Activate(); err != nil {
		t.Fatal(err)
	}
	d := open(t, cfg)
	if err := d.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if wrong := failure(t, cfg); wrong != "" {
		t.Errorf("doctor: %s", wrong)
	}
	const closes = "the server closes the connection at once: check whether it wants TLS or none, a client certificate, and a login"
	for _, c := range []struct {
		want   string
		change func(*config.Ignite)
	}{
		{"the node refuses the connection: The user name or password is incorrect [userName=ignite]", func(i *config.Ignite) { i.Password = "wrong" }},
		{"the node refuses the connection: The user name or password is incorrect [userName=null]", func(i *config.Ignite) { i.Username, i.Password = "", "" }},
		{"the server's certificate is signed by an unknown authority: name the authority's file (ca)", func(i *config.Ignite) { i.TLS.CA = authority.CA }},
		{"the server's certificate is not for other: use a name that it has, or set tls.server_name", func(i *config.Ignite) { i.TLS.ServerName = "other" }},
		{closes, func(i *config.Ignite) { i.TLS.Cert, i.TLS.Key = "", "" }},
		{closes, func(i *config.Ignite) { i.TLS = config.TLS{} }},
	} {
		other := *cfg
		c.change(&other.Ignite)
		if wrong := failure(t, &other); !strings.HasSuffix(wrong, c.want) {
			t.Errorf("doctor says %q, want %q", wrong, c.want)
		}
	}
	seal, err := d.Seal(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	if wrong := failure(t, cfg); !strings.HasPrefix(wrong, "nothing listens at "+cfg.Ignite.Addresses[0]+": ") {
		t.Errorf("of a node that is away, doctor says %q", wrong)
	}
	if err := c.Nodes[0].Start(); err != nil {
		t.Fatal(err)
	}
	again := open(t, cfg)
	if got, err := again.Seal(t.Context()); err != nil || got != seal {
		t.Errorf("after a restart: error %v, the same secret: %v", err, got == seal)
	}
}

// The doctor says how many copies a namespace has, once it exists.
func TestBackups(t *testing.T) {
	c := ignitetest.Shared(t)
	for backups, want := range map[int]doctor.Finding{
		0: {Verdict: doctor.Warn, Subject: "backups", Found: "there are none: all state is read again from the log if a node dies"},
		2: {Verdict: doctor.OK, Subject: "backups", Found: "2 of each value"},
	} {
		cfg := settings(t, c)
		cfg.Ignite.Backups = backups
		found := Check(t.Context(), cfg)
		if last := found[len(found)-1]; last.Subject != "layout" || last.Verdict != doctor.OK {
			t.Errorf("before the namespace exists: %+v", found)
		}
		if err := open(t, cfg).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if found := Check(t.Context(), cfg); found[len(found)-1] != want {
			t.Errorf("with %d backups: got %+v, want the end %+v", backups, found, want)
		}
	}
}

// The doctor says which nodes are in different clusters.
func TestTwoClusters(t *testing.T) {
	cfg := settings(t, ignitetest.Shared(t))
	cfg.Ignite.Addresses = append(cfg.Ignite.Addresses, ignitetest.New(t, 1).Addresses()...)
	slices.Sort(cfg.Ignite.Addresses)
	want := fmt.Sprintf("these nodes are in different clusters: %s | %s. ", cfg.Ignite.Addresses[0], cfg.Ignite.Addresses[1])
	if wrong := failure(t, cfg); !strings.HasPrefix(wrong, want) {
		t.Errorf("doctor says %q, want %q", wrong, want)
	}
}

// When a node dies and no other one has copies, the doctor says that, until a process that writes has begun again, without any event.
func TestNoCopyIsLeft(t *testing.T) {
	c := ignitetest.New(t, 2)
	cfg := settings(t, c)
	cfg.Shards, cfg.Ignite.Backups = 64, 0
	d := open(t, cfg)
	if err := d.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept := 0 // a node that can say how its copies are: one that was started on a machine with too little CPU may lack the view
	testkit.Eventually(t, time.Minute, "a node knows its copies", func() (bool, string) {
		kept = (kept + 1) % 2
		client := thin.New(thin.Config{Addresses: cfg.Ignite.Addresses[kept : kept+1], Login: thin.Login{Timeout: 10 * time.Second}, Request: 10 * time.Second})
		defer client.Close()
		_, err := client.Copies(t.Context(), "LOST")
		return err == nil, fmt.Sprint(err)
	})
	if err := c.Nodes[1-kept].Kill(); err != nil {
		t.Fatal(err)
	}
	cfg.Ignite.Addresses = cfg.Ignite.Addresses[kept : kept+1] // the other one is not asked for
	const want = "copies of partitions of which none is complete any more: "
	testkit.Eventually(t, time.Minute, "partitions are lost", func() (bool, string) {
		wrong := failure(t, cfg)
		return strings.HasPrefix(wrong, want), wrong
	})
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() { d.Watch(ctx) })
	defer watching.Wait()
	defer cancel()
	testkit.Eventually(t, time.Minute, "the cache was made again", func() (bool, string) {
		wrong := failure(t, cfg)
		return wrong == "", wrong
	})
}
