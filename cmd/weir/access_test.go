package main

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

const (
	oneToken     = "0123456789abcdef"
	anotherToken = "fedcba9876543210"
)

// A running API requires tokens and certificates and reloads them when their files change; the
// commands authenticate with them.
func TestAccessToARunningServer(t *testing.T) {
	flags, _ := servers(t, allTopics)
	dir, authority := t.TempDir(), auth.NewAuthority(t)
	tokens := writeFile(t, dir, "tokens", oneToken+" engine service:payment_risk\n")
	cert, key := authority.Issue("server")
	clientCert, clientKey := authority.Issue("client")
	flags = append(flags, "--api.tokens_file", tokens, "--api.tls.cert", cert, "--api.tls.key", key, "--api.tls.client_ca", authority.CA)
	p := start(t, append([]string{"run"}, flags...)...)
	base := strings.Replace(p.address(t), "http://", "https://", 1)

	with := func(tokenFile string, more ...string) []string {
		return append([]string{"--address", base, "--ca", authority.CA, "--token-file", tokenFile}, more...)
	}
	certificate := []string{"--cert", clientCert, "--key", clientKey}
	ask := func(args []string) string {
		t.Helper()
		_, err := weir(t, append(append([]string{"query"}, args...), "device_tx_7d", "device_id=d1")...)
		return fmt.Sprint(err)
	}
	other := writeFile(t, dir, "other", anotherToken)
	if got := ask(with(tokens, certificate...)); got != "<nil>" {
		t.Errorf("with token and certificate: %s", got)
	}
	_, err := weir(t, append(append([]string{"query"}, with(tokens, certificate...)...), "user_devices_30d", "user_id=u1")...)
	if want := "asking for the feature user_devices_30d takes the scope query or service:login_risk; you have service:payment_risk"; fmt.Sprint(err) != want {
		t.Errorf("a feature that is not in scope\ngot  %v\nwant %s", err, want)
	}
	if got, want := ask(with(tokens)), "a client certificate signed by one of the server's authorities is required"; got != want {
		t.Errorf("without a certificate\ngot  %s\nwant %s", got, want)
	}
	if got, want := ask(with(other, certificate...)), "the token is not valid here: it may be mistyped, or replaced by another"; got != want {
		t.Errorf("with a wrong token\ngot  %s\nwant %s", got, want)
	}
	if got, want := ask([]string{"--address", base, "--token-file", tokens}), "the server's certificate is signed by an unknown authority: name the authority's file (ca)"; !strings.Contains(got, want) {
		t.Errorf("without the authority's file: got %s, want it to contain %q", got, want)
	}

	testkit.Eventually(t, patience, "being ready", func() (bool, string) {
		out, err := weir(t, "health", "--address", base, "--ca", authority.CA)
		return err == nil && out == "ready\n", fmt.Sprint(out, err)
	})
	// A container checks itself with its settings alone.
	t.Setenv("WEIR_API_LISTEN", strings.TrimPrefix(base, "https://"))
	t.Setenv("WEIR_API_TLS_CERT", cert)
	t.Setenv("WEIR_API_TLS_KEY", key)
	if out, err := weir(t, "health"); err != nil || out != "ready\n" {
		t.Errorf("health with the settings' credentials: got %q, error %v; want ready", out, err)
	}

	writeFile(t, dir, "tokens", anotherToken)
	p.shows(t, "tokens loaded")
	if got := ask(with(other, certificate...)); got != "<nil>" {
		t.Errorf("with the new token: %s", got)
	}
	renewed, _ := authority.Issue("server")
	if renewed != cert {
		t.Fatalf("the renewed certificate is in %s, want it in %s", renewed, cert)
	}
	p.shows(t, "certificates loaded")
	if got := ask(with(other, certificate...)); got != "<nil>" {
		t.Errorf("with the new certificate: %s", got)
	}
	writeFile(t, dir, "tokens", "short")
	p.shows(t, "tokens refused; the previous ones stay valid")
	if got := ask(with(other, certificate...)); got != "<nil>" {
		t.Errorf("with bad tokens in the file, the previous ones should stay valid: %s", got)
	}
	if log := p.err.String(); strings.Contains(log, oneToken) || strings.Contains(log, anotherToken) {
		t.Errorf("the log contains a token:\n%s", log)
	}
	// A TLS listener refuses plain HTTP.
	response, err := http.Get(p.address(t) + "/v1/features")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("over plain HTTP: %s, want 400", response.Status)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	var sums [4]int
	asked := regexp.MustCompile(`msg="a client asked" client=engine questions=(\d+) refused=(\d+) entities=(\d+) values=(\d+) over=`)
	for _, line := range asked.FindAllStringSubmatch(p.err.String(), -1) { // one a minute, and one at the end
		for i := range sums {
			n, err := strconv.Atoi(line[i+1])
			if err != nil {
				t.Fatal(err)
			}
			sums[i] += n
		}
	}
	if sums != [4]int{2, 1, 1, 1} {
		t.Errorf("by the log the client engine has asked %v, want 2 questions, 1 refused, about 1 entity and 1 value:\n%s", sums, p.err.String())
	}
}

func TestBadAccess(t *testing.T) {
	t.Parallel()
	authority := auth.NewAuthority(t)
	cert, key := authority.Issue("server")
	short := writeFile(t, t.TempDir(), "tokens", "short")
	tooShort := short + ":1: a token of 5 characters can be guessed: at least 16, such as from `openssl rand -hex 32`"
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "--features", shipped, "--api.tokens_file", short}, "api.tokens_file: " + tooShort},
		{[]string{"run", "--features", shipped, "--api.tls.cert", cert, "--api.tls.key", "/none.key"},
			"api.tls.cert: open /none.key: no such file or directory"},
		{[]string{"run", "--features", shipped, "--api.tls.cert", cert, "--api.tls.key", key, "--api.tls.client_ca", short, "--api.tls.clients_file", short},
			"api.tls.client_ca: " + short + " holds no certificate in PEM form"},
		{[]string{"health", "--address", "http://127.0.0.1:1", "--token-file", short}, "--token-file: " + tooShort},
		{[]string{"health", "--address", "http://127.0.0.1:1", "--ca", short}, "--ca: " + short + " holds no certificate in PEM form"},
		{[]string{"health", "--address", "http://127.0.0.1:1", "--cert", cert}, "--cert and --key belong together: give both"},
		{[]string{"health", "--address", "http://127.0.0.1:1", "--cert", cert, "--key", "/none.key"},
			"--cert: open /none.key: no such file or directory"},
	} {
		if _, err := weir(t, c.args...); fmt.Sprint(err) != c.want {
			t.Errorf("%v\ngot  %v\nwant %s", c.args, err, c.want)
		}
	}
}

func TestCheckOfAccess(t *testing.T) {
	t.Parallel()
	dir, authority, server := t.TempDir(), auth.NewAuthority(t), redistest.Embedded(t)
	cert, key := authority.Issue("server")
	tokens := writeFile(t, dir, "tokens", oneToken)
	args := []string{"run", "--check", "--roles", "api", "--features", shipped, "--redis.addresses", server.Addr(),
		"--api.tokens_file", tokens, "--api.tls.cert", cert, "--api.tls.key", key, "--api.tls.client_ca", authority.CA}
	out, _ := weir(t, args...)
	if want := "ok    api                          wants TLS, a client's certificate, one of 1 token\n"; !strings.Contains(out, want) {
		t.Errorf("the line\n%s\nis not in\n%s", want, out)
	}
	for url, want := range map[string]string{
		auth.NewIssuer(t).URL: "ok    issuer of tokens             answers\n",
		"http://127.0.0.1:1": `FAIL  issuer of tokens             api.oidc.issuer: Get "http://127.0.0.1:1/.well-known/openid-configuration": ` +
			"nothing listens at 127.0.0.1:1: check the address, and that the server runs\n",
	} {
		if out, _ := weir(t, append(args, "--api.oidc.issuer", url, "--api.oidc.audience", "weir")...); !strings.Contains(out, want) {
			t.Errorf("the line\n%s\nis not in\n%s", want, out)
		}
	}
	writeFile(t, dir, "tokens", "")
	out, _ = weir(t, args...)
	if want := "FAIL  api                          api.tokens_file: " + tokens + " holds no token\n"; !strings.Contains(out, want) {
		t.Errorf("the line\n%s\nis not in\n%s", want, out)
	}
}

// Every role warns that it answers everyone: a processor shows the contents of records.
func TestOpenAccessIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"processor", "api"} {
		p := start(t, "run", "--roles", role, "--features", shipped, "--api.listen", "0.0.0.0:0", "--kafka.brokers", "127.0.0.1:1", "--redis.addresses", "127.0.0.1:1")
		p.address(t)
		p.stop()
		if err := p.wait(t); err != nil {
			t.Error(err)
		}
		if !strings.Contains(p.err.String(), "anyone who can reach this address is answered") {
			t.Errorf("%s: the log has no warning:\n%s", role, p.err.String())
		}
	}
}

// A server accepts its names, see guard.hosts. It refuses other names, and never refuses IP addresses.
func TestHosts(t *testing.T) {
	t.Parallel()
	hostname, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	flags, _ := servers(t, allTopics)
	base := start(t, append([]string{"run", "--api.hosts", "weir-api"}, flags...)...).address(t)
	for host, want := range map[string]int{"": 200, "weir-api:80": 200, hostname: 200, "evil.com": 421} {
		r, err := http.NewRequest("GET", base+"/v1/features", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host // empty stands for the address
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("host %q: %s, want %d", host, answer.Status, want)
		}
	}
}
