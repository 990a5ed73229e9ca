package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

func TestHealth(t *testing.T) {
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run"}, flags...)...)
	base := p.address(t)
	ready(t, base)
	out, err := weir(t, "health", "--address", base)
	if err != nil || out != "ready\n" {
		t.Errorf("got %q, error %v; want ready", out, err)
	}
	t.Setenv("WEIR_API_LISTEN", base[len("http://"):])
	if out, err := weir(t, "health"); err != nil || out != "ready\n" {
		t.Errorf("with the address of the settings: got %q, error %v; want ready", out, err)
	}
}

func TestHealthReportsWhatIsMissing(t *testing.T) {
	t.Parallel()
	answer := func(code int, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/readyz" {
				t.Errorf("got a request for %s, want /readyz", r.URL.Path)
			}
			w.WriteHeader(code)
			fmt.Fprint(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	unready := answer(503, `{"ready":false,"checks":[{"name":"redis","ready":false,"error":"it is away"},{"name":"processor","ready":true}]}`)
	other := answer(404, "<html>")
	secure := filepath.Join(t.TempDir(), "weir.yaml")
	if err := os.WriteFile(secure, []byte("api: {tls: {cert: cert.pem, key: key.pem}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--address", unready + "/"}, "not ready: redis: it is away"},
		{[]string{"--address", other}, other + "/readyz answered 404 Not Found; is it a weir server?"},
		{[]string{"--address", "127.0.0.1:1"}, "no answer from http://127.0.0.1:1: nothing listens at 127.0.0.1:1: check the address, and that the server runs"},
		{[]string{"--address", "http://%zz"}, `--address: "http://%zz" is not an address such as http://weir:8080`},
		{[]string{"--config", secure, "--token-file", "tokens"}, "--token-file needs --address, with the name in the certificate of the process: " +
			"without it the certificate is not checked, and no token is sent"},
		{[]string{"--config", "/none.yaml"}, "settings: open /none.yaml: no such file or directory"},
	} {
		if _, err := weir(t, append([]string{"health"}, c.args...)...); fmt.Sprint(err) != c.want {
			t.Errorf("%v\ngot  %v\nwant %s", c.args, err, c.want)
		}
	}
}

func TestNearby(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]string{
		":8080": "127.0.0.1:8080", "0.0.0.0:80": "127.0.0.1:80", "[::]:80": "127.0.0.1:80",
		"10.0.0.1:80": "10.0.0.1:80", "weir:80": "weir:80", "[::1]:80": "[::1]:80",
	} {
		if got := nearby(listen); got != want {
			t.Errorf("nearby(%s) = %s, want %s", listen, got, want)
		}
	}
}
