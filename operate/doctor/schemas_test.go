package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/features/definition"
)

func TestSchemas(t *testing.T) {
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
	enriched := func(topic string) string {
		return "streams:\n  s: {topic: in, timestamp: t, fields: {user: string}, enrich: {service: all, topic: " + topic +
			", format: avro}}\nfeatures: {n: 'COUNT(1d, s, user)'}\nservices: {all: [n]}\n"
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"is_compatible": false, "messages": ["READER_FIELD: user"]}`))
	}))
	t.Cleanup(refusing.Close)
	empty := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error_code": 40401, "message": "Subject 'scored-value' not found."}`))
	}))
	t.Cleanup(empty.Close)
	for name, test := range map[string]struct{ definitions, url, want string }{
		"a schema with all fields": {stream("payments", "user"), fake.URL(), "OK schema of payments: avro"},
		"a schema without a field": {stream("payments", "users"), fake.URL(), "FAIL schemas: FILE:2:"},
		"no schema yet":            {stream("orders", "user"), fake.URL(), "WARN schema of orders: the registry has no subject orders-value: nothing was written yet, or under another name"},
		"no registry":              {stream("payments", "user"), "", "FAIL schema registry: registry.url is not set, and records of payments name schemas of a registry"},
		"a registry that is away":  {stream("payments", "user"), away.URL, "FAIL schema registry: " + away.URL + ": proxy error"},
		"events written in Avro":   {enriched("payments"), fake.URL(), "OK schema of payments: fits the latest of payments-value"},
		"the first such events":    {enriched("scored"), empty.URL, "OK schema of scored: will be the first of scored-value"},
		"a schema to be refused":   {enriched("payments"), refusing.URL, "FAIL schema of payments: the registry will refuse it, as it is incompatible with the latest of payments-value: READER_FIELD: user"},
		"an odd registry":          {enriched("payments"), away.URL, "FAIL schema registry: " + away.URL + ": proxy error"},
		"Avro without a registry":  {enriched("scored"), "", "FAIL schema registry: registry.url is not set, and records of scored name schemas of a registry"},
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
			of := SchemaRegistry{URL: test.url, Registry: registry, Files: []string{file}}
			if test.url != "" {
				if of.Client, err = sr.NewClient(sr.URLs(test.url)); err != nil {
					t.Fatal(err)
				}
			}
			var got strings.Builder
			for _, f := range Schemas(t.Context(), of) {
				fmt.Fprintf(&got, "%s %s: %s\n", f.Verdict, f.Subject, f.Found)
				if (f.Verdict == OK) != (f.Do == "") {
					t.Errorf("the advice for %q is %q", f.Found, f.Do)
				}
			}
			if want := strings.ReplaceAll(test.want, "FILE", file); want == "" && got.Len() > 0 || !strings.Contains(got.String(), want) {
				t.Errorf("got\n%swant\n%s", got.String(), want)
			}
		})
	}
}
