package main

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/weir-stream/weir/internal/testkit"
)

// fakeCollector receives spans by OTLP over HTTP.
type fakeCollector struct {
	*httptest.Server

	mu       sync.Mutex
	resource map[string]string // attributes of the process that sent the last spans
	spans    map[string][]*wire.Span
	text     strings.Builder // everything that was sent
}

func newFakeCollector(t *testing.T) *fakeCollector {
	t.Helper()
	c := &fakeCollector{spans: map[string][]*wire.Span{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(body, &request) != nil {
			t.Errorf("%s %s is not a request with spans (%v)", r.Method, r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.text.Write(body)
		for _, from := range request.ResourceSpans {
			c.resource = attributes(from.Resource.Attributes)
			for _, scope := range from.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans[s.Name] = append(c.spans[s.Name], s)
				}
			}
		}
	}))
	t.Cleanup(c.Close)
	return c
}

// attributes returns attributes as text.
func attributes(list []*common.KeyValue) map[string]string {
	byKey := map[string]string{}
	for _, a := range list {
		switch v := a.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			byKey[a.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			byKey[a.Key] = strconv.FormatInt(v.IntValue, 10)
		}
	}
	return byKey
}

// A payment's trace links to the batch that applied it, and a client's trace has the question and its read.
func TestRunSendsSpans(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
	c := newFakeCollector(t)
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--tracing.endpoint", c.URL, "--tracing.sample_ratio", "0"}, flags...)...)
	base := p.address(t)
	ready(t, base)

	const payment, question = "0af7651916cd43dd8448eb211c80319c", "4bf92f3577b34da6a3ce929d0e0e4736"
	header := func(trace string) string { return "00-" + trace + "-b7ad6b7169203331-01" }
	writer := &kafka.Writer{Addr: kafka.TCP(flags[7]), Topic: "transactions", BatchSize: 1}
	defer writer.Close()
	err := writer.WriteMessages(t.Context(), kafka.Message{
		Headers: []kafka.Header{{Key: "traceparent", Value: []byte(header(payment))}},
		Value: fmt.Appendf(nil, `{"event_id": %q, "type": "transaction", "timestamp": %d, "device_id": %q, "user_id": %q,
			"merchant_id": "m1", "amount": 1, "status": "approved"}`, secret, time.Now().UnixMilli(), secret, secret),
	})
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, patience, "an answer", func() (bool, string) {
		out, err := weir(t, "query", "--address", base, "device_tx_7d", "device_id="+secret)
		return strings.Contains(out, "PRESENT"), fmt.Sprint(out, err)
	})
	r, err := http.NewRequest("GET", base+"/v1/features/device_tx_7d?device_id="+secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("traceparent", header(question))
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	p.stop()
	if err := p.wait(t); err != nil {
		t.Fatal(err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.spans, "history") // present only if the previous question was long enough ago
	// Traces that begin here are not sampled.
	if len(c.spans) != 3 || len(c.spans["apply"]) != 1 || len(c.spans["read"]) != 1 || len(c.spans["GET /v1/features/{name}"]) != 1 {
		t.Fatalf("want one span of each apply, read and GET; got %v", c.spans)
	}
	apply, read, asked := c.spans["apply"][0], c.spans["read"][0], c.spans["GET /v1/features/{name}"][0]
	if len(apply.Links) != 1 || hex.EncodeToString(apply.Links[0].TraceId) != payment {
		t.Errorf("the batch links to %v, want the payment's trace", apply.Links)
	}
	if a := attributes(apply.Attributes); a["messaging.batch.message_count"] != "1" || a["weir.batch.calls"] == "0" {
		t.Errorf("unexpected attributes of the batch: %v", a)
	}
	if hex.EncodeToString(asked.TraceId) != question || hex.EncodeToString(asked.ParentSpanId) != "b7ad6b7169203331" {
		t.Errorf("the question's trace is %x and its parent %x, want those of the request", asked.TraceId, asked.ParentSpanId)
	}
	if string(read.ParentSpanId) != string(asked.SpanId) || attributes(read.Attributes)["db.operation.batch.size"] != "1" {
		t.Errorf("the read is not the question's child, or not of one command: %v", read)
	}
	if c.resource["service.name"] != "weir" || c.resource["service.version"] == "" || c.resource["deployment.environment.name"] != "test" {
		t.Errorf("unexpected attributes of the process: %v", c.resource)
	}
	if strings.Contains(c.text.String(), secret) {
		t.Error("the spans name an entity")
	}
}

// An unreachable collector delays nothing.
func TestRunWithoutACollector(t *testing.T) {
	t.Parallel()
	flags, _ := servers(t, allTopics)
	p := start(t, append([]string{"run", "--tracing.endpoint", "http://127.0.0.1:1", "--tracing.sample_ratio", "1"}, flags...)...)
	base := p.address(t)
	ready(t, base)
	if _, err := weir(t, "query", "--address", base, "device_tx_7d", "device_id=d1"); err != nil {
		t.Error(err)
	}
	p.stop()
	if err := p.wait(t); err != nil {
		t.Error(err)
	}
	if log := p.err.String(); !strings.Contains(log, "spans are lost") || !strings.Contains(log, "weir has stopped") {
		t.Errorf("the log does not report lost spans, or the end:\n%s", log)
	}
}
