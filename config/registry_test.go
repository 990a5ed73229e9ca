package config_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/weir-stream/weir/config"
)

// Requests to the Schema Registry use the password or token that is in its file at that time, over TLS.
func TestLoginAtTheRegistry(t *testing.T) {
	serverTLS, ca := authority(t)
	var given string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given = r.Header.Get("Authorization")
		_, _ = w.Write([]byte(`["payments-value"]`))
	}))
	server.TLS = serverTLS
	server.StartTLS()
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "secret")
	ask := func(r config.Registry) error {
		t.Helper()
		c := config.Default()
		r.URL, r.Timeout, given = server.URL, c.Registry.Timeout, ""
		c.Registry = r
		client, err := c.SchemaRegistry()
		if err != nil {
			t.Fatal(err)
		}
		if of := client.OptValue(sr.HTTPClient).(*http.Client); of.Timeout != r.Timeout {
			t.Errorf("the timeout of requests is %v, want %v", of.Timeout, r.Timeout)
		}
		_, err = client.Subjects(within(t))
		return err
	}
	encrypted := config.TLS{Enabled: true, CA: ca, ServerName: "example.com"}
	for _, test := range []struct {
		registry config.Registry
		secret   string
		want     string
	}{
		{config.Registry{TLS: encrypted}, "", ""},
		{config.Registry{TLS: encrypted, Username: "weir", PasswordFile: file}, "old", "Basic d2VpcjpvbGQ="},
		{config.Registry{TLS: encrypted, Username: "weir", PasswordFile: file}, "new", "Basic d2VpcjpuZXc="},
		{config.Registry{TLS: encrypted, TokenFile: file}, "a.b.c", "Bearer a.b.c"},
		{config.Registry{TLS: encrypted, Username: "weir", Password: "set"}, "", "Basic d2VpcjpzZXQ="},
		{config.Registry{TLS: encrypted, Token: "d.e.f"}, "", "Bearer d.e.f"},
	} {
		rewrite(t, file, test.secret+"\n")
		if err := ask(test.registry); err != nil || given != test.want {
			t.Errorf("%+v: logged in with %q, error %v; want %q", test.registry, given, err, test.want)
		}
	}
	if ask(config.Registry{TLS: config.TLS{Enabled: true, ServerName: "example.com"}}) == nil {
		t.Error("a registry whose authority is unknown is trusted")
	}
}

// A password in the URL, as on a command line, is refused and not shown.
func TestRegistryURLWithAPassword(t *testing.T) {
	c := config.Default()
	c.Registry.URL = "https://weir:hunter2@registry:8081"
	_, err := c.SchemaRegistry()
	if want := `the URL of the Schema Registry, "https://…@registry:8081", must be like https://registry:8081, and the login be in registry.username and registry.password`; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
