package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/operate/doctor"
)

const avroDefinitions = "streams: {s: {topic: payments, timestamp: t, format: avro, fields: {user: string}}}\nfeatures: {n: 'COUNT(1d, s, user)'}\n"

// The doctor's findings about schemas are lines of the check, and a FAIL among them fails it.
func TestCheckRegistry(t *testing.T) {
	var out strings.Builder
	list := &checkList{out: &out}
	list.take(doctor.Findings{
		{Verdict: doctor.OK, Subject: "schema of payments", Found: "avro"},
		{Verdict: doctor.Warn, Subject: "schema of orders", Found: "the registry has no subject", Do: "nothing"},
	})
	registry, err := definition.Parse("f.yaml", []byte(avroDefinitions))
	if err != nil {
		t.Fatal(err)
	}
	cfg := config.Default()
	checkRegistry(t.Context(), list, cfg, registry)
	const want = "ok    schema of payments           avro\n" +
		"warn  schema of orders             the registry has no subject\n" +
		"FAIL  schema registry              registry.url is not set, and records of payments name schemas of a registry\n"
	if got := out.String(); got != want || list.failed != 1 {
		t.Errorf("%d failed, got\n%swant\n%s", list.failed, got, want)
	}
}

// The check queries the configured registry about the configured definitions.
func TestCheckAsksTheRegistry(t *testing.T) {
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
	cfg := config.Default()
	cfg.Features, cfg.Registry.URL = []string{filepath.Join(t.TempDir(), "f.yaml")}, fake.URL()
	if err := os.WriteFile(cfg.Features[0], []byte(avroDefinitions), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := definition.Load(cfg.Features...)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	checkRegistry(t.Context(), &checkList{out: &out}, cfg, registry)
	if want := "FAIL  schemas                      " + cfg.Features[0] + ":1:"; !strings.Contains(out.String(), want) {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
