package pipeline_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline/schemas"
)

var avroSchemas = []string{
	`{"type": "record", "name": "Payment", "fields": [{"name": "type", "type": "string"}, {"name": "at", "type": "long"}, {"name": "user", "type": "string"},
  {"name": "cents", "type": "long"}, {"name": "note", "type": "string"}]}`,
	`{"type": "record", "name": "Payment", "fields": [{"name": "note", "type": ["null", "string"]}, {"name": "cents", "type": "int"},
  {"name": "user", "type": "string"}, {"name": "added", "type": {"type": "array", "items": "double"}}, {"name": "at", "type": "long"}, {"name": "type", "type": "string"}]}`,
}

// avroPayments are payments written with a schema, framed by its ID.
func avroPayments(t *testing.T, schema, from, to int) []kafka.Message {
	t.Helper()
	list := payments(from, to)
	for i := range list {
		n := from + i
		event := map[string]any{"type": "payment", "at": at, "user": fmt.Sprint("u", n%7), "cents": int64(n), "note": ""}
		if schema == 2 {
			event["cents"], event["note"], event["added"] = n, map[string]any{"string": ""}, []any{1.5}
		}
		data, err := avro.MustParse(avroSchemas[schema-1]).Encode(event)
		if err != nil {
			t.Fatal(err)
		}
		list[i].Value = append([]byte{0, 0, 0, 0, byte(schema)}, data...)
	}
	return list
}

// A registry that is unavailable stops the partitions that need it, which say so and lose nothing. Records with known
// schemas are still applied, and a record with an unknown schema is a dead letter.
func TestRegistryUnavailable(t *testing.T) {
	t.Parallel()
	fake := srfake.New()
	t.Cleanup(fake.Close)
	client, err := sr.NewClient(sr.URLs(fake.URL()))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range avroSchemas {
		if _, err := client.CreateSchema(t.Context(), fmt.Sprint("s", len(s)), sr.Schema{Schema: s}); err != nil {
			t.Fatal(err)
		}
	}
	var away atomic.Bool
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		found, err := http.Get(fake.URL() + r.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer found.Body.Close()
		w.WriteHeader(found.StatusCode)
		if _, err := io.Copy(w, found.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(gate.Close)
	if client, err = sr.NewClient(sr.URLs(gate.URL)); err != nil {
		t.Fatal(err)
	}
	b := newBenchOf(t, strings.Replace(definitions, "topic: payments\n", "topic: payments\n    format: avro\n", 1), map[string]int{"payments": partitions, deadLetters: 1})
	metrics := prometheus.NewRegistry()
	cache := schemas.New(schemas.Config{Client: client, Timeout: time.Minute, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(cache.Close)
	b.config.Schemas, b.config.Metrics = cache, metrics

	away.Store(true)
	b.write(avroPayments(t, 1, 0, 50)...)
	b.run()
	waits := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "a partition that waits for "+want, func() (bool, string) {
			err := b.processor.Ready(context.Background())
			return err != nil && strings.Contains(err.Error(), want) && gaugeOf(t, metrics, "weir_stopped_partitions", "schema_registry") > 0, fmt.Sprint(err)
		})
	}
	waits("schema 1 is needed and cannot be fetched: away")
	b.expect(0)
	away.Store(false)
	b.expect(50)
	away.Store(true)
	b.write(avroPayments(t, 1, 50, 99)...)
	b.expect(99)
	b.write(avroPayments(t, 1, 99, 100)...)
	b.write(avroPayments(t, 2, 100, 150)...)
	b.write(avroPayments(t, 1, 150, 160)...)
	waits("schema 2 is needed and cannot be fetched: away")
	away.Store(false)
	b.expect(160)
	if n := b.processor.Stats().Dead; n != 0 {
		t.Errorf("%d dead letters while the registry was unavailable, want none", n)
	}
	unknown := avroPayments(t, 1, 160, 161)
	unknown[0].Value[4] = 77
	b.write(unknown...)
	testkit.Eventually(t, time.Minute, "a dead letter", func() (bool, string) {
		n := b.processor.Stats().Dead
		return n == 1, fmt.Sprint(n)
	})
	b.expect(160)
	b.awaitReady(b.processor)
}
