package config

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/keytab"
)

func TestReferenceNamesEverySettingAndExplainsIt(t *testing.T) {
	d := readDocument("weir.yaml", reference)
	if len(d.findings) > 0 {
		t.Fatal(d.findings)
	}
	for _, key := range keys {
		if _, ok := d.values[key]; !ok {
			t.Errorf("weir.yaml does not name %s", key)
		}
		if d.comments[key] == "" {
			t.Errorf("weir.yaml does not explain %s", key)
		}
	}
}

func TestEveryRuleIsTried(t *testing.T) {
	source, err := os.ReadFile("bad_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules {
		if !slices.Contains(keys, r.key) {
			t.Errorf("there is a rule for %s, which is not a setting", r.key)
		}
		if !strings.Contains(string(source), "`"+r.key+" ") || !strings.Contains(string(source), "is not allowed: "+r.allowed+"`") {
			t.Errorf("no bad file breaks the rule for %s", r.key)
		}
	}
}

// A Kerberos ticket is requested in the realm of the settings, or else of krb5.conf, and for the service of the
// settings.
func TestKerberosTicket(t *testing.T) {
	dir := t.TempDir()
	conf, keys := filepath.Join(dir, "krb5.conf"), filepath.Join(dir, "weir.keytab")
	secret := keytab.New()
	if err := secret.AddEntry("weir", "OTHER", "hunter2", time.Unix(0, 0), 1, etypeID.AES256_CTS_HMAC_SHA1_96); err != nil {
		t.Fatal(err)
	}
	table, err := secret.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{conf: []byte("[libdefaults]\n default_realm = WEIR.TEST\n"), keys: table} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for given, want := range map[string]string{"": "WEIR.TEST", "OTHER": "OTHER"} {
		login := kerberosLogin{Kerberos{Service: "stream", Realm: given, Keytab: keys, Config: conf}, "weir"}
		ticket, err := login.ticket(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if who := ticket.Client.Credentials; who.UserName() != "weir" || who.Realm() != want || ticket.Service != "stream" {
			t.Errorf("realm %q: a ticket for %s of %s at %s, want for stream of weir at %s", given, ticket.Service, who.UserName(), who.Realm(), want)
		}
	}
}

// A broker that hangs during the login is not waited for: kafka-go takes off the deadline before it. Later the
// connection has the deadlines that requests set.
func TestLoginHasADeadline(t *testing.T) {
	client, broker := net.Pipe()
	defer broker.Close()
	conn := &loginConn{Conn: client, within: time.Millisecond}
	defer conn.Close()
	read := make([]byte, 1)
	for _, d := range []time.Time{time.Now().Add(time.Hour), {}} { // connecting, and then logging in
		if err := conn.SetDeadline(d); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Read(read); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading during the login: got error %v, want that of its deadline", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = broker.Write(read) }()
	if _, err := conn.Read(read); err != nil {
		t.Errorf("reading after that: got error %v", err)
	}
}
