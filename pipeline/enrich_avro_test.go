package pipeline_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/pipeline/schemas"
)

// Events in Avro begin with the ID of their schema, which is registered once under the topic's subject. While the
// registry is unavailable, or refuses the schema, their partitions stop and say so; afterwards no event is missing or
// out of order. Definitions with more features have another schema.
func TestEnrichInAvro(t *testing.T) {
	t.Parallel()
	fake := srfake.New()
	t.Cleanup(fake.Close)
	behind, err := url.Parse(fake.URL())
	if err != nil {
		t.Fatal(err)
	}
	var refusal atomic.Int32
	proxy := httputil.NewSingleHostReverseProxy(behind)
	gate := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := int(refusal.Load()); code != 0 {
			w.WriteHeader(code)
			fmt.Fprintf(w, `{"error_code": %d, "message": "refused with %d"}`, code, code)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(gate.Close)
	client, err := sr.NewClient(sr.URLs(gate.URL))
	if err != nil {
		t.Fatal(err)
	}
	definitions := strings.Replace(enrichedDefinitions, "topic: payments.enriched}", "topic: payments.enriched, format: avro}", 1)
	b := newBenchOf(t, definitions, map[string]int{"payments": partitions, enrichedTopic: partitions, deadLetters: 1})
	metrics := prometheus.NewRegistry()
	cache := schemas.New(schemas.Config{Client: client, Timeout: time.Minute, Metrics: metrics, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(cache.Close)
	b.config.Schemas, b.config.Metrics, b.config.MaxEvents = cache, metrics, 30

	refusal.Store(http.StatusServiceUnavailable)
	sent := purchases(9, 600)
	b.write(sent[:300]...)
	b.run()
	waits := func(want string) {
		t.Helper()
		testkit.Eventually(t, time.Minute, "the partitions wait", func() (bool, string) {
			err := b.processor.Ready(context.Background())
			return err != nil && strings.Contains(err.Error(), "write enriched events to "+enrichedTopic+": the schema of payments.enriched-value is needed and cannot be registered: "+want) &&
				gaugeOf(t, metrics, "weir_stopped_partitions", "schema_registry") == partitions, fmt.Sprint(err)
		})
	}
	waits("refused with 503")
	for p, messages := range b.output(enrichedTopic, partitions) {
		if len(messages) > 0 {
			t.Fatalf("%d events were written to partition %d before the schema was registered", len(messages), p)
		}
	}
	refusal.Store(http.StatusConflict)
	waits("refused with 409")
	refusal.Store(0)
	b.committed(300)

	more := defined.Registry(t, strings.Replace(strings.Replace(definitions, "  mean:", "  added: COUNT(1h, payment, card)\n  mean:", 1), "[paid,", "[added, paid,", 1))
	b.processor.Reload(more)
	b.awaitDefinitions(more)
	b.write(sent[300:]...)
	b.committed(600)

	known := map[uint32]*avro.Schema{}
	want := b.wanted(sent)
	for p, messages := range b.output(enrichedTopic, partitions) {
		for i, m := range messages {
			id := binary.BigEndian.Uint32(m.Value[1:])
			if known[id] == nil {
				found, err := client.SchemaByID(t.Context(), int(id))
				if err != nil {
					t.Fatal(err)
				}
				if known[id], err = avro.Parse(found.Schema); err != nil {
					t.Fatal(err)
				}
			}
			var event map[string]any
			if _, err := known[id].Decode(m.Value[5:], &event); err != nil || m.Value[0] != 0 {
				t.Fatalf("%v\n%x", err, m.Value)
			}
			if header(m, "weir-source-offset") != strconv.FormatInt(want[p][i].offset, 10) {
				t.Fatalf("record %d of partition %d is of the event at offset %s, want %d", i, p, header(m, "weir-source-offset"), want[p][i].offset)
			}
		}
		if len(messages) != len(want[p]) {
			t.Errorf("partition %d has %d events, want %d", p, len(messages), len(want[p]))
		}
	}
	versions, err := client.SubjectVersions(t.Context(), enrichedTopic+"-value")
	if len(known) != 2 || len(versions) != 2 || err != nil {
		t.Errorf("%d schemas and the versions %v, error %v; want 2: one for each version of the definitions", len(known), versions, err)
	}
}
