package main

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// logins returns the ways to log in at a broker: for each the listener's address and the kafka
// section of the settings, without brokers. The issuer and the Kerberos may be nil.
func logins(broker *kafkatest.Broker, authority *auth.Authority, issuer *auth.Issuer, kerberos *auth.Kerberos) map[string][2]string {
	cert, key := authority.Issue("client")
	sasl := func(mechanism string) [2]string {
		return [2]string{broker.SecureAddr(), fmt.Sprintf("tls: {enabled: true, ca: %s}\n  sasl: {mechanism: %s, username: %s, password: %s}",
			authority.CA, mechanism, kafkatest.SecureUser, kafkatest.SecurePassword)}
	}
	all := map[string][2]string{
		"plain": sasl("plain"), "scram-sha-256": sasl("scram-sha-256"), "scram-sha-512": sasl("scram-sha-512"),
		"certificate": {broker.MutualAddr(), fmt.Sprintf("tls: {enabled: true, ca: %s, cert: %s, key: %s}", authority.CA, cert, key)},
	}
	if issuer != nil {
		all["oauthbearer"] = [2]string{broker.SecureAddr(), fmt.Sprintf(
			"tls: {enabled: true, ca: %s}\n  sasl: {mechanism: oauthbearer, oauth: {token_url: %s, client_id: %s, client_secret: %s}}",
			authority.CA, issuer.TokenURL, auth.IssuerClient, auth.IssuerSecret)}
	}
	if kerberos != nil {
		all["gssapi"] = [2]string{broker.SecureAddr(), fmt.Sprintf(
			"tls: {enabled: true, ca: %s}\n  sasl: {mechanism: gssapi, username: %s, kerberos: {service: %s, keytab: %s, config: %s}}",
			authority.CA, kafkatest.SecureUser, kafkatest.KerberosService, kerberos.Keytab(kafkatest.SecureUser), kerberos.Config)}
	}
	return all
}

// Processor, API and the operator's commands work with a broker and a Redis that accept only
// encrypted connections of known clients.
func TestOverEncryptedConnections(t *testing.T) {
	t.Parallel()
	authority, foreign := auth.NewAuthority(t), auth.NewAuthority(t)
	issuer := auth.NewIssuer(t)
	kerberos := auth.FindKerberos(t)
	broker := kafkatest.New(t, kafkatest.Options{TLS: authority, Issuer: issuer, Kerberos: kerberos})
	redis := redistest.New(t, redistest.Options{AOF: true, TLS: authority})
	if err := redis.Client(t).ConfigSet(t.Context(), "requirepass", "open sesame").Err(); err != nil {
		t.Fatal(err)
	}
	cert, key := authority.Issue("client")

	settings := func(t *testing.T, login [2]string, namespace string) string {
		return writeFile(t, t.TempDir(), "weir.yaml", fmt.Sprintf(`
namespace: %[1]s
shards: 4
features: [%[2]s]
kafka:
  brokers: [%[3]s]
  group: %[1]s
  create_topics: true
  topic_partitions: 2
  topic_replication: 1
  %[4]s
redis:
  addresses: [%[5]s]
  password: open sesame
  tls: {enabled: true, ca: %[6]s, cert: %[7]s, key: %[8]s}
api: {listen: '127.0.0.1:0'}
`, namespace, shipped, login[0], login[1], redis.SecureAddr(), authority.CA, cert, key))
	}

	for name, login := range logins(broker, authority, issuer, kerberos) {
		t.Run(name, func(t *testing.T) {
			file := settings(t, login, testkit.Namespace(t))
			p := start(t, "run", "--config", file)
			base := p.address(t)
			ready(t, base)
			if _, err := weir(t, "generate", "--config", file, "--events", "200", "--live"); err != nil {
				t.Fatal(err)
			}
			testkit.Eventually(t, patience, "an answer", func() (bool, string) {
				out, err := weir(t, "query", "--address", base, "device_tx_7d", "device_id=d000001")
				return strings.Contains(out, "PRESENT"), fmt.Sprint(out, err)
			})
			for _, command := range []string{"run --check", "doctor", "progress", "deadletters list", "deadletters replay"} {
				if out, err := weir(t, append(strings.Fields(command), "--config", file)...); err != nil {
					t.Errorf("weir %s: %v\n%s", command, err, out)
				}
			}
			p.stop()
			if err := p.wait(t); err != nil {
				t.Error(err)
			}
		})
	}

	if kerberos == nil {
		t.Run("gssapi", func(t *testing.T) { auth.NewKerberos(t) }) // says what to install
	}

	// By TLS 1.3 a client has written its first request before it is refused. The reset that this causes may overtake the
	// reason.
	const noCertificate = `.*(tls: .*certificate|check whether it wants TLS or none, a client certificate, )`
	login := logins(broker, authority, nil, nil)["scram-sha-512"]
	for name, test := range map[string]struct {
		login [2]string
		flags []string
		want  string // a line of the check
	}{
		"a broker of another authority": {login, []string{"--kafka.tls.ca", foreign.CA},
			`FAIL  kafka +127\.0\.0\.1:\d+: the server's certificate is signed by an unknown authority: name the authority's file \(ca\)`},
		"a Redis of another authority": {login, []string{"--redis.tls.ca", foreign.CA},
			`FAIL  redis +127\.0\.0\.1:\d+: the server's certificate is signed by an unknown authority: name the authority's file \(ca\)`},
		"a broker of another name": {login, []string{"--kafka.tls.server_name", "example.com"},
			`FAIL  kafka +127\.0\.0\.1:\d+: the server's certificate is not for example\.com: use a name that it has, or set tls\.server_name`},
		"a wrong password": {[2]string{login[0], strings.Replace(login[1], kafkatest.SecurePassword, "guessed", 1)}, nil,
			`FAIL  kafka +127\.0\.0\.1:\d+: the brokers refuse the login: check the user and the password or token under kafka\.sasl`},
		"a broker without our certificate": {[2]string{broker.MutualAddr(), "tls: {enabled: true, ca: " + authority.CA + "}"}, nil,
			`FAIL  kafka +127\.0\.0\.1:\d+: ` + noCertificate},
		"a Redis without our certificate": {login, []string{"--redis.tls.cert=", "--redis.tls.key="},
			`FAIL  redis +127\.0\.0\.1:\d+: ` + noCertificate},
	} {
		t.Run(name, func(t *testing.T) {
			file := settings(t, test.login, testkit.Namespace(t))
			out, err := weir(t, append([]string{"run", "--check", "--config", file}, test.flags...)...)
			if err == nil || !regexp.MustCompile("(?m)^"+test.want).MatchString(out) {
				t.Errorf("error %v; no line matches\n%s\nin\n%s", err, test.want, out)
			}
		})
	}

	t.Run("readiness says why a process waits", func(t *testing.T) {
		p := start(t, "run", "--config", settings(t, login, testkit.Namespace(t)), "--redis.tls.ca", foreign.CA)
		p.shows(t, "waiting for Redis")
		p.shows(t, "certificate signed by unknown authority")
		if code, body := statusOf(t, p.address(t)+"/readyz"); code != http.StatusServiceUnavailable ||
			!strings.Contains(body, "certificate signed by unknown authority") {
			t.Errorf("/readyz: got %d %s, want the unknown authority", code, body)
		}
	})
}
