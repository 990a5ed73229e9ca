package schemas_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/schemas"
	"github.com/weir-stream/weir/state"
)

const definitions = `
streams:
  s:
    topic: payments
    timestamp: {path: t, unit: ms}
    format: {type: avro, schema: reader.avsc, framing: confluent}
    fields: {user: string, amount: {type: decimal, path: price.amount}, currency: {type: string, path: price.currency}, n: int}
`

// reader has defaults for fields that older schemas lack, and an alias of a field.
const reader = `{"type": "record", "name": "Payment", "fields": [{"name": "t", "type": "long"}, {"name": "user", "type": "string", "aliases": ["customer"]},
  {"name": "n", "type": ["null", "int"], "default": null},
  {"name": "price", "type": {"type": "record", "name": "Price", "fields": [{"name": "amount", "type": "string"}, {"name": "currency", "type": "string", "default": "EUR"}]},
   "default": {"amount": "0.01", "currency": "USD"}}]}`

func decoder(t *testing.T) *record.Decoder {
	t.Helper()
	r, err := definition.LoadFS(fstest.MapFS{"test.yaml": {Data: []byte(definitions)}, "reader.avsc": {Data: []byte(reader)}}, "test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return r.NewDecoder()
}

// newCache makes a cache of the registry at a URL; its delayed work runs when later is called.
func newCache(t *testing.T, url string) (s *schemas.Cache, later func()) {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		t.Fatal(err)
	}
	var list []func()
	s = schemas.New(schemas.Config{
		Client: client, Timeout: 10 * time.Second, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
		After: func(_ time.Duration, do func()) { list = append(list, do) },
	})
	t.Cleanup(s.Close)
	return s, func() {
		for _, do := range list {
			do()
		}
		list = nil
	}
}

func framed(t *testing.T, id byte, schema string, event map[string]any) *record.Record {
	t.Helper()
	data, err := avro.MustParse(schema).Encode(event)
	if err != nil {
		t.Fatal(err)
	}
	return &record.Record{Partition: state.Partition{Topic: "payments"}, Timestamp: record.NoTime, Value: append([]byte{0, 0, 0, 0, id}, data...)}
}

func shown(e record.Event) string {
	var texts []string
	for _, v := range e.Values {
		text := "null"
		if !v.IsNull() {
			text = string(v.AppendText(nil))
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

// supply decodes a record until it has all schemas.
func supply(t *testing.T, s *schemas.Cache, d *record.Decoder, rec *record.Record) ([]record.Event, error) {
	t.Helper()
	for {
		events, err := d.Decode(rec)
		missing, lacks := errors.AsType[*record.MissingSchema](err)
		if !lacks {
			return events, err
		}
		for s.Supply(t.Context(), missing) != nil {
			if t.Context().Err() != nil {
				t.Fatal("the schema was never supplied")
			}
		}
	}
}

// Records of several schemas under their IDs are read by name; missing fields have the reader's
// default, and references are followed.
func TestSchemasOfRecords(t *testing.T) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	s, _ := newCache(t, fake.URL())
	d := decoder(t)
	const old = `{"type": "record", "name": "Payment", "fields": [{"name": "customer", "type": "string"}, {"name": "t", "type": "long"}]}`
	const price = `{"type": "record", "name": "Price", "fields": [{"name": "amount", "type": "string"}]}`
	const whole = `{"type": "record", "name": "Payment", "fields": [{"name": "t", "type": "long"}, {"name": "n", "type": "int"}, {"name": "price", "type": "Price"}, {"name": "user", "type": "string"}]}`
	first := register(t, fake.URL(), "payments-value", sr.Schema{Schema: old})
	register(t, fake.URL(), "price", sr.Schema{Schema: price})
	second := register(t, fake.URL(), "other-value", sr.Schema{Schema: whole, References: []sr.SchemaReference{{Name: "Price", Subject: "price", Version: 1}}})

	events, err := supply(t, s, d, framed(t, first, old, map[string]any{"customer": "a", "t": int64(1)}))
	if err != nil || shown(events[0]) != "a 0.01 USD null" {
		t.Errorf("a record of the old schema: events %v, error %v", events, err)
	}
	inline := strings.Replace(whole, `"type": "Price"`, `"type": `+price, 1)
	rec := framed(t, second, inline, map[string]any{"t": int64(1), "n": 7, "user": "b", "price": map[string]any{"amount": "12.5"}})
	events, err = supply(t, s, d, rec)
	if err != nil || shown(events[0]) != "b 12.50 EUR 7" && shown(events[0]) != "b 12.5 EUR 7" {
		t.Errorf("a record of the new schema: event %v, error %v", shown(events[0]), err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = d.Decode(rec) }); n != 0 {
		t.Errorf("%v allocations a record, want none", n)
	}
}

func register(t *testing.T, url, subject string, schema sr.Schema) byte {
	t.Helper()
	client, err := sr.NewClient(sr.URLs(url))
	if err != nil {
		t.Fatal(err)
	}
	found, err := client.CreateSchema(t.Context(), subject, schema)
	if err != nil {
		t.Fatal(err)
	}
	return byte(found.ID)
}

// A missing or unusable schema makes poison. An unknown ID is requested again after a while.
func TestUnusableSchemas(t *testing.T) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	s, later := newCache(t, fake.URL())
	d := decoder(t)
	const schema = `{"type": "record", "name": "P", "fields": [{"name": "t", "type": "long"}, {"name": "user", "type": "string"}]}`
	rec := framed(t, 1, schema, map[string]any{"t": int64(1), "user": "a"})
	poisoned := func(rec *record.Record, want string) {
		t.Helper()
		_, err := supply(t, s, d, rec)
		p, ok := errors.AsType[*record.Poison](err)
		if !ok || p.Error() != "stream s: "+want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
	poisoned(rec, "schema 1 is not in the registry")
	if id := register(t, fake.URL(), "payments-value", sr.Schema{Schema: schema}); id != 1 {
		t.Fatalf("the schema has ID %d, want 1", id)
	}
	poisoned(rec, "schema 1 is not in the registry")
	later()
	if events, err := supply(t, s, d, rec); err != nil || shown(events[0]) != "a 0.01 USD null" {
		t.Errorf("after the schema was registered: events %v, error %v", events, err)
	}
	register(t, fake.URL(), "json", sr.Schema{Schema: `{"type": "object"}`, Type: sr.TypeJSON})
	rec.Value[4] = 2
	poisoned(rec, "schema 2 cannot be used: it is of type JSON, and the stream's format is avro")
	register(t, fake.URL(), "text", sr.Schema{Schema: `"string"`})
	rec.Value[4] = 3
	poisoned(rec, "schema 3 cannot be used: the schema is of type string; records are read from one of type record")
	rec.Value = []byte(`{"t": 1}`)
	poisoned(rec, "expected a zero byte and the ID of a schema, found byte 0x7b")
	rec.Value = []byte{0, 0, 0}
	poisoned(rec, "expected a zero byte and the ID of a schema, found 3 bytes")
}

// A registry that is unavailable, refuses, or is another service is retried.
func TestRegistryThatFails(t *testing.T) {
	fake := srfake.New()
	t.Cleanup(fake.Close)
	const schema = `{"type": "record", "name": "P", "fields": [{"name": "t", "type": "long"}, {"name": "user", "type": "string"}]}`
	id := register(t, fake.URL(), "payments-value", sr.Schema{Schema: schema})
	var how atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch how.Load() {
		case 0:
			http.Error(w, "overloaded", http.StatusServiceUnavailable)
		case 1:
			http.NotFound(w, r)
		case 2:
			http.Error(w, `{"error_code": 40101, "message": "who are you?"}`, http.StatusUnauthorized)
		default:
			found, err := http.Get(fake.URL() + r.URL.Path)
			if err != nil {
				t.Error(err)
				return
			}
			defer found.Body.Close()
			if _, err := io.Copy(w, found.Body); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(proxy.Close)
	s, _ := newCache(t, proxy.URL)
	d := decoder(t)
	rec := framed(t, id, schema, map[string]any{"t": int64(1), "user": "a"})
	_, err := d.Decode(rec)
	missing, _ := errors.AsType[*record.MissingSchema](err)
	for i, want := range []string{"overloaded", "404 page not found", "who are you?"} {
		how.Store(int32(i))
		for message := ""; message != "schema 1 is needed and cannot be fetched: "+want; {
			if err := s.Supply(t.Context(), missing); err == nil {
				t.Fatalf("no error from a registry that answers %q", want)
			} else {
				message = err.Error()
			}
		}
	}
	how.Store(3)
	if events, err := supply(t, s, d, rec); err != nil || shown(events[0]) != "a 0.01 USD null" {
		t.Errorf("the registry works again: events %v, error %v", events, err)
	}
	without := schemas.New(schemas.Config{Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler)})
	defer without.Close()
	if err := without.Supply(context.Background(), missing); err == nil || err.Error() != "schema 1 is needed and cannot be fetched: registry.url is not set" {
		t.Errorf("without a registry: got error %v", err)
	}
}
