package node

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/config"
	"github.com/weir-stream/weir/features/definition"
)

func TestCheckRegistry(t *testing.T) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "proxy error", http.StatusBadGateway) }))
	t.Cleanup(away.Close)
	client, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	const payment = `{"type": "record", "name": "Payment", "fields": [{"name": "t", "type": "long"}, {"name": "user", "type": "string"}]}`
	if _, err := client.CreateSchema(t.Context(), "payments-value", sr.Schema{Schema: payment}); err != nil {
		t.Fatal(err)
	}
	stream := func(topic, field string) string {
		return "streams:\n  s: {topic: " + topic + ", timestamp: {path: t, unit: ms}, format: avro, fields: {" + field + ": string}}\nfeatures: {n: 'COUNT(1d, s, " + field + ")'}\n"
	}
	for name, test := range map[string]struct{ definitions, url, want string }{
		"a schema with all fields": {stream("payments", "user"), fake.URL(), "ok    schema of payments           avro\n"},
		"a schema without a field": {stream("payments", "users"), fake.URL(), "FAIL  schemas                      FILE:2:"},
		"no schema yet":            {stream("orders", "user"), fake.URL(), "warn  schema of orders             the registry has no subject orders-value: nothing was written yet, or under another name\n"},
		"no registry":              {stream("payments", "user"), "", "FAIL  registry                     registry.url is not set, and records of payments name schemas of a registry\n"},
		"a registry that is away":  {stream("payments", "user"), away.URL, "FAIL  registry                     " + away.URL + ": proxy error"},
		"nothing of a registry":    {strings.Replace(stream("payments", "user"), "avro", "json", 1), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "features.yaml")
			if err := os.WriteFile(file, []byte(test.definitions), 0o600); err != nil {
				t.Fatal(err)
			}
			registry, err := definition.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			cfg := config.Default()
			cfg.Features, cfg.Registry.URL = []string{file}, test.url
			var out strings.Builder
			checkRegistry(t.Context(), &checkList{out: &out}, cfg, registry)
			if want := strings.ReplaceAll(test.want, "FILE", file); want == "" && out.Len() > 0 || !strings.Contains(out.String(), want) {
				t.Errorf("got\n%swant\n%s", out.String(), want)
			}
		})
	}
}
