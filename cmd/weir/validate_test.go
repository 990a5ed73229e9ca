package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"
)

// Definitions are checked against the latest schema of each topic.
func TestValidateWithRegistry(t *testing.T) {
	fake := srfake.New(srfake.WithAuth("Bearer secret"))
	t.Cleanup(fake.Close)
	t.Setenv("WEIR_REGISTRY_TOKEN", "secret")
	client, err := sr.NewClient(sr.URLs(fake.URL()), sr.BearerToken("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for _, schema := range []string{`{"type": "record", "name": "P", "fields": [{"name": "at", "type": "long"}]}`,
		`{"type": "record", "name": "P", "fields": [{"name": "at", "type": "long"}, {"name": "user", "type": ["null", "string"], "default": null}]}`} {
		if _, err := client.CreateSchema(t.Context(), "payments-value", sr.Schema{Schema: schema}); err != nil {
			t.Fatal(err)
		}
	}
	validate := func(text string) string {
		t.Helper()
		file := filepath.Join(t.TempDir(), "test.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := newValidateCommand()
		cmd.SetArgs([]string{file, "--registry", fake.URL()})
		cmd.SetOut(&out)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err != nil {
			return strings.ReplaceAll(err.Error(), file, "test.yaml")
		}
		return out.String()
	}
	const good = "streams:\n  payment: {topic: payments, timestamp: at, format: avro, fields: {user: string}}\n"
	for text, want := range map[string]string{
		good: "valid: 0 features of 1 stream in 0 state series, 0 services\n",
		strings.Replace(good, "user: string", "usr: string", 1): `test.yaml:2:68: stream "payment" cannot read usr: unknown field "usr" in record P; did you mean "user"?`,
		strings.Replace(good, "user: string", "user: int", 1):   `test.yaml:2:68: stream "payment" cannot read user: a field of type int cannot be read from Avro's string`,
		strings.Replace(good, "payments", "refunds", 1):         `test.yaml:2:3: stream "payment": the latest schema of topic "refunds" cannot be fetched: `,
	} {
		if got := validate(text); got != want && !(strings.HasSuffix(want, ": ") && strings.HasPrefix(got, want)) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
