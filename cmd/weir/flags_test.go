package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/weir-stream/weir/internal/testkit/auth"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Every command with --config reads its settings from that file.
func TestConfigOfEveryCommand(t *testing.T) {
	t.Parallel()
	needed := map[string]string{ // to come as far as the settings
		"weir deadletters show": "a/0/1",
		"weir diff":             shipped + " " + shipped + " --backfill",
		"weir list add":         "blocked c1 --why x",
		"weir list remove":      "blocked c1 --why x",
		"weir list show":        "blocked",
		"weir materialize":      "--output - --from-topics",
		"weir progress set":     "a/0 --to start",
		"weir reshard":          "--to 8",
		"weir sql":              "x",
		"weir state":            "user_id=u1",
		"weir state drop":       "user_id=u1",
	}
	var visit func(*cobra.Command)
	visit = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			visit(sub)
		}
		if !c.Runnable() || c.Flag("config") == nil || c.Name() == "deadletters" || c.CommandPath() == "weir list" { // it only has others
			return
		}
		args := append(strings.Fields(c.CommandPath())[1:], strings.Fields(needed[c.CommandPath()])...)
		if _, err := weir(t, append(args, "--config", "/none.yaml")...); err == nil || !strings.HasSuffix(err.Error(), "open /none.yaml: no such file or directory") {
			t.Errorf("%s does not read the file of --config: %v", c.CommandPath(), err)
		}
	}
	visit(newRootCommand())
}

// The commands that ask a server show it their token and certificate, trust the given authority, and
// wait no longer than the given time.
func TestConnectionOfEveryCommand(t *testing.T) {
	t.Parallel()
	authority := auth.NewAuthority(t)
	pem, err := os.ReadFile(authority.CA)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(pem)
	pair, err := tls.LoadX509KeyPair(authority.Issue("server"))
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown = append(shown, r.TLS.PeerCertificates[0].Subject.CommonName+" "+r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"ready": true, "checks": [], "definitions": [], "features": [], "results": []}`)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted}
	server.StartTLS()
	defer server.Close()
	cert, key := authority.Issue("client")
	credentials := []string{"--ca", authority.CA, "--cert", cert, "--key", key, "--token-file", writeFile(t, t.TempDir(), "token", oneToken)}
	for _, command := range []string{"health --address " + server.URL, "query tx --address " + server.URL, "diff " + server.URL + " " + server.URL} {
		args, name := append(strings.Fields(command), credentials...), strings.Fields(command)[0]
		shown = nil
		_, err := weir(t, args...)
		if err != nil && strings.Contains(err.Error(), "no answer") {
			t.Errorf("weir %s: %v", name, err)
		}
		for _, got := range shown {
			if want := "client Bearer " + oneToken; got != want {
				t.Errorf("weir %s presents %s, want %s", name, got, want)
			}
		}
		if shown == nil {
			t.Errorf("weir %s sends no request: %v", name, err)
		}
		_, err = weir(t, append(args, "--timeout", "1ns")...)
		if got := fmt.Sprint(err); !strings.Contains(got, "the server does not answer in time") {
			t.Errorf("weir %s with a timeout that is too short: got error %s", name, got)
		}
	}
}

// What weir doctor and weir run --check find depends on flags.
func TestChecksFollowTheFlags(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rows := writeFile(t, folder, "rows.csv", "id,risky\na,true,x\n")
	tables := writeFile(t, folder, "tables.yaml", "tables: {country: {file: rows.csv, key: id, fields: {risky: bool}}}\nfeatures: {risky: {expr: country.risky}}\n")
	definitions := writeFile(t, folder, "features.yaml", `
streams:
  login: {topic: logins, timestamp: at, format: avro, fields: {user: string}}
  pay: {topic: transactions, timestamp: at, fields: {user: string}}
features:
  logins: COUNT(30d, login, user)
  pays: COUNT(1h, pay, user)
`)
	broker, redis := kafkatest.Embedded(t, map[string]int{"logins": 1, "weir.dead-letters": 1}), redistest.Embedded(t)
	settings := []string{"--features", definitions, "--kafka.brokers", broker.ListenAddrs()[0], "--redis.addresses", redis.Addr()}
	for _, c := range []struct{ command, flags, want string }{
		{"run --check", "--kafka.create_topics", "warn  topic transactions           is missing; weir run will create it\n"},
		{"run --check", "--registry.url http://127.0.0.1:1", "FAIL  schema registry              http://127.0.0.1:1: nothing listens at "},
		{"run --check", "--features " + tables, "FAIL  table country                " + rows + ":2: wrong number of fields\n"},
		{"doctor", "--features " + tables, "  " + rows + ":2: wrong number of fields\n"},
		{"doctor", "--kafka.create_topics", "WARN  topic transactions       is missing\n"},
		{"doctor", "--kafka.max_record_bytes 2KiB", ": values of more than 2048 become dead letters\n"},
		{"doctor", "--registry.url http://127.0.0.1:1", "FAIL  schema registry          http://127.0.0.1:1: nothing listens at "},
		{"doctor", "--kafka.dead_letter_topic logins", `kafka.dead_letter_topic is logins, which stream "login" reads: name another one` + "\n"},
		{"doctor", "--copies 700h", "keeps events for 168h0m0s: a copy of Redis that is 700h0m0s old cannot be brought up to date\n"},
	} {
		args := append(strings.Fields(c.command), settings...)
		without, _ := weir(t, args...)
		with, _ := weir(t, append(args, strings.Fields(c.flags)...)...)
		if strings.Contains(without, c.want) || !strings.Contains(with, c.want) {
			t.Errorf("with %s, and only then, weir %s should print %q; with:\n%s\nwithout:\n%s", c.flags, c.command, c.want, with, without)
		}
	}
}
