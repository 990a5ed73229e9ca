package config_test

import (
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/config"
)

// A login by Kerberos says which of its files is missing.
func TestKerberosWithoutFiles(t *testing.T) {
	dir := t.TempDir()
	conf, keys := filepath.Join(dir, "krb5.conf"), filepath.Join(dir, "weir.keytab")
	login := kafkaLogin(t, config.SASL{Mechanism: "gssapi", Username: "weir", Kerberos: config.Kerberos{Service: "kafka", Keytab: keys, Config: conf}})
	const at = "kafka.sasl.kerberos: no ticket of weir for kafka at b-1:9098: "
	if _, err := first(t, login, "b-1"); err == nil || err.Error() != at+"configuration file could not be opened: "+conf+" open "+conf+": no such file or directory" {
		t.Error(err)
	}
	rewrite(t, conf, "[libdefaults]\n default_realm = WEIR.TEST\n")
	if _, err := first(t, login, "b-1"); err == nil || err.Error() != at+"open "+keys+": no such file or directory" {
		t.Error(err)
	}
}
