package auth

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit/server"
)

// Realm is the realm of a Kerberos.
const Realm = "WEIR.TEST"

// Kerberos is a key distribution centre of MIT's Kerberos.
type Kerberos struct {
	Config string // krb5.conf for clients and brokers

	t   testing.TB
	dir string
}

// lackKerberos returns what is missing for a Kerberos server.
func lackKerberos() error {
	for _, program := range []string{"krb5kdc", "kdb5_util", "kadmin.local"} {
		if err := server.LackCommand(program, "krb5-kdc and krb5-admin-server"); err != nil {
			return err
		}
	}
	return nil
}

// FindKerberos is NewKerberos, but returns nil if this machine lacks what it needs.
func FindKerberos(t testing.TB) *Kerberos {
	t.Helper()
	if lackKerberos() != nil {
		return nil
	}
	return NewKerberos(t)
}

// NewKerberos starts a key distribution centre, which ends with the test. If this machine lacks what
// it needs, the test is skipped or fails, and says what to install.
func NewKerberos(t testing.TB) *Kerberos {
	t.Helper()
	if err := lackKerberos(); err != nil {
		server.Skip(t, err)
	}
	port, err := server.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	k := &Kerberos{t: t, dir: t.TempDir()}
	k.Config = filepath.Join(k.dir, "krb5.conf")
	address := fmt.Sprintf("127.0.0.1:%d", port)
	k.write("krb5.conf", fmt.Sprintf("[libdefaults]\n default_realm = %[1]s\n dns_lookup_kdc = false\n udp_preference_limit = 1\n"+
		"[realms]\n %[1]s = {\n  kdc = %[2]s\n }\n", Realm, address))
	k.write("kdc.conf", fmt.Sprintf("[kdcdefaults]\n kdc_listen = \"\"\n kdc_tcp_listen = %[3]s\n[realms]\n %[1]s = {\n  database_name = %[2]s/principal\n"+
		"  key_stash_file = %[2]s/stash\n }\n[logging]\n kdc = STDERR\n", Realm, k.dir, address))
	k.run("kdb5_util", "create", "-s", "-P", "master")
	kdc := server.NewProcess(k.dir, "env", append(k.environment(), "krb5kdc", "-n")...)
	if err := kdc.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(kdc.Remove)
	if err := server.Await("Kerberos", kdc, func(ctx context.Context) error {
		connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}); err != nil {
		t.Fatal(err)
	}
	return k
}

// Keytab adds a principal, without its realm, and returns a file with its keys.
func (k *Kerberos) Keytab(principal string) string {
	k.t.Helper()
	file := filepath.Join(k.dir, strings.ReplaceAll(principal, "/", "-")+".keytab")
	k.run("kadmin.local", "addprinc", "-randkey", principal)
	k.run("kadmin.local", "ktadd", "-k", file, principal)
	return file
}

func (k *Kerberos) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

func (k *Kerberos) environment() []string {
	return []string{"KRB5_CONFIG=" + k.Config, "KRB5_KDC_PROFILE=" + filepath.Join(k.dir, "kdc.conf")}
}

func (k *Kerberos) run(name string, arguments ...string) {
	k.t.Helper()
	command := exec.CommandContext(k.t.Context(), name, arguments...)
	command.Env = append(os.Environ(), k.environment()...)
	if out, err := command.CombinedOutput(); err != nil {
		k.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
