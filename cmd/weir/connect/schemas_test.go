package connect

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
)

// The configured registry is asked about the configured definitions.
func TestCheckSchemas(t *testing.T) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	client, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	const payment = `{"type": "record", "name": "Payment", "fields": [{"name": "t", "type": "long"}]}`
	if _, err := client.CreateSchema(t.Context(), "payments-value", sr.Schema{Schema: payment}); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "f.yaml")
	const definitions = "streams: {s: {topic: payments, timestamp: t, format: avro, fields: {user: string}}}\nfeatures: {n: 'COUNT(1d, s, user)'}\n"
	if err := os.WriteFile(file, []byte(definitions), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := definition.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{
		"":                   "schema registry: registry.url is not set, and records of payments name schemas of a registry",
		fake.URL():           "schemas: " + file + ":1:",
		"http://127.0.0.1:1": "schema registry: http://127.0.0.1:1: nothing listens at 127.0.0.1:1",
	} {
		cfg := config.Default()
		cfg.Features, cfg.Registry.URL = []string{file}, url
		findings, err := CheckSchemas(t.Context(), cfg, registry)
		if err != nil {
			t.Fatal(err)
		}
		last := findings[len(findings)-1]
		if got := last.Subject + ": " + last.Found; !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
