package credentials_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/weir-stream/weir/internal/credentials"
)

func TestNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients")
	write(t, path, "# who asks\npayments-engine service:payment_risk\n\n prometheus\tmetrics\r\n")
	named, err := credentials.LoadNamed(path)
	if err != nil {
		t.Fatal(err)
	}
	is := func(name, want string) {
		t.Helper()
		if got := named.Scopes(name).String(); got != want {
			t.Errorf("%q may ask for %s, want %s", name, got, want)
		}
	}
	is("payments-engine", "service:payment_risk")
	is("prometheus", "metrics")
	for _, other := range []string{"", "#", "payments", "payments-engine ", "PROMETHEUS"} {
		is(other, "none")
	}
	write(t, path, "prometheus admin\n")
	_, _ = named.Look()
	if changed, err := named.Look(); changed || fmt.Sprint(err) != path+":1: scope 1, admin, allows too much to be one: name those of metrics, author, operator and lists that are needed" {
		t.Errorf("Look = %v, %v", changed, err)
	}
	is("prometheus", "metrics")
	write(t, path, "prometheus query\n")
	_, _ = named.Look()
	if changed, err := named.Look(); !changed || err != nil {
		t.Errorf("Look = %v, %v; want true", changed, err)
	}
	is("prometheus", "query")
	is("payments-engine", "none")
}

func TestBadNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "clients")
	for text, want := range map[string]string{
		"":                     path + " names no client",
		"# a query\n":          path + " names no client",
		"a query\nb\n":         path + `:2: "b" has no scopes; a line is NAME SCOPE…`,
		"a query\n\na metrics": path + `:3: "a" is there twice`,
		"a query everything":   path + ":1: scope 2 is unknown: the scopes are query, service:NAME, metrics, author, operator and lists",
		"a service:":           path + ":1: scope 1 is unknown: the scopes are query, service:NAME, metrics, author, operator and lists",
		"\na metrics list":     path + ":2: scope 2 is unknown: the scopes are query, service:NAME, metrics, author, operator and lists",
	} {
		write(t, path, text)
		if _, err := credentials.LoadNamed(path); fmt.Sprint(err) != want {
			t.Errorf("%q\ngot  %v\nwant %s", text, err, want)
		}
	}
	if _, err := credentials.LoadNamed("/none"); fmt.Sprint(err) != "open /none: no such file or directory" {
		t.Error(err)
	}
}
