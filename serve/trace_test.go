package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/weir-stream/weir/state"
)

// attributes are those of a span, as text.
func attributes(list []attribute.KeyValue) map[string]string {
	byKey := map[string]string{}
	for _, a := range list {
		byKey[string(a.Key)] = a.Value.String()
	}
	return byKey
}

func TestSpansOfQuestions(t *testing.T) {
	const (
		caller   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
		question = `{"features": ["device_tx_7d", "device_amount_7d"], "entities": [{"device_id": "jane"}, {"device_id": "d1"}]}`
	)
	read := map[string]string{"db.system.name": "redis", "weir.features": "2", "weir.entities": "2", "weir.reads": "4"}
	for _, test := range []struct {
		name                 string
		method, target, body string
		broken               error // of the store
		span                 string
		want                 map[string]string // attributes of the question's span
		read                 map[string]string // attributes of the read's, nil for none
		status               string
	}{
		{
			name: "a question", method: "POST", target: queryPath, body: question, span: "POST /v1/query", read: read, status: "Unset",
			want: map[string]string{"http.request.method": "POST", "http.route": "/v1/query", "http.response.status_code": "200"},
		},
		{
			name: "by the path", method: "GET", target: "/v1/features/device_tx_7d?device_id=jane", span: "GET /v1/features/{name}", status: "Unset",
			want: map[string]string{"http.request.method": "GET", "http.route": "/v1/features/{name}", "http.response.status_code": "200"},
			read: map[string]string{"db.system.name": "redis", "weir.features": "1", "weir.entities": "1", "weir.reads": "1"},
		},
		{
			name: "a timeline", method: "GET", target: "/v1/timeline/device_tx_7d?device_id=jane", span: "GET /v1/timeline/{name}", status: "Unset",
			want: map[string]string{"http.request.method": "GET", "http.route": "/v1/timeline/{name}", "http.response.status_code": "200"},
			read: map[string]string{"db.system.name": "redis", "weir.features": "1", "weir.entities": "1", "weir.reads": "7"},
		},
		{
			name: "a wrong question", method: "POST", target: queryPath, body: `{"features": ["jane"], "entities": [{"jane": "jane"}]}`,
			span: "POST /v1/query", status: "Unset", want: map[string]string{
				"http.request.method": "POST", "http.route": "/v1/query", "http.response.status_code": "404", "error.type": "unknown_feature"},
		},
		{
			name: "a store that is down", method: "POST", target: queryPath, body: question, broken: errors.New("down"),
			span: "POST /v1/query", read: read, status: "Error", want: map[string]string{
				"http.request.method": "POST", "http.route": "/v1/query", "http.response.status_code": "503", "error.type": "store_unavailable"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			spans := tracetest.NewInMemoryExporter()
			h := newHandler(&fakeReader{states: stored(), err: test.broken}, func(c *setup) {
				c.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
			})
			r := httptest.NewRequest(test.method, test.target, strings.NewReader(test.body))
			r.Header.Set("Traceparent", caller)
			h.ServeHTTP(httptest.NewRecorder(), r)
			got := spans.GetSpans()
			if text := fmt.Sprintf("%+v", got); strings.Contains(text, "jane") {
				t.Errorf("the spans name an entity: %s", text)
			}
			var asked *tracetest.SpanStub
			for i := range got {
				if got[i].SpanKind == trace.SpanKindServer {
					asked = &got[i]
				}
			}
			if asked == nil {
				t.Fatalf("no span of a question in %+v", got)
			}
			if parent := asked.Parent; asked.Name != test.span || asked.Status.Code.String() != test.status ||
				parent.SpanID().String() != "b7ad6b7169203331" || asked.SpanContext.TraceID() != parent.TraceID() {
				t.Errorf("unexpected span %s with status %s and parent %v", asked.Name, asked.Status.Code, parent)
			}
			if diff := cmp.Diff(test.want, attributes(asked.Attributes)); diff != "" {
				t.Error(diff)
			}
			if test.read == nil {
				if len(got) != 1 {
					t.Errorf("there are %d spans, want 1", len(got))
				}
				return
			}
			got = slices.DeleteFunc(slices.Clone(got), func(s tracetest.SpanStub) bool { return s.Name == "history" })
			if len(got) != 2 || got[0].Name != "read" || got[0].Parent.SpanID() != asked.SpanContext.SpanID() ||
				got[0].Status.Code != asked.Status.Code {
				t.Fatalf("the spans are %+v, want a read as the question's child", got)
			}
			if diff := cmp.Diff(test.read, attributes(got[0].Attributes)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Waiting for an event and reading the history have spans apart from reading the state. A question that uses a shared
// history has no span of it.
func TestSpansOfWaitingAndOfTheHistory(t *testing.T) {
	const (
		question = `{"features": ["device_tx_7d"], "entities": [{"device_id": "jane"}]`
		waiting  = question + `, "wait_for": {"topic": "transactions", "partition": 0, "offset": 7, "timeout_ms": `
	)
	down := errors.New("down")
	type span struct {
		Name, Kind, Status string
		Attributes         map[string]string
	}
	read := span{"read", "client", "Unset", map[string]string{"db.system.name": "redis", "weir.features": "1", "weir.entities": "1", "weir.reads": "1"}}
	wait := func(status, applied, looks string) span {
		return span{"wait", "internal", status, map[string]string{"weir.applied": applied, "weir.looks": looks}}
	}
	history := func(status string) span {
		return span{"history", "client", status, map[string]string{"db.system.name": "redis"}}
	}
	for _, test := range []struct {
		name               string
		questions          []string
		applied            int   // the check at which the event is applied; 0 for never
		unapplied, unknown error // of Applied and of History
		want               []span
	}{
		{"the second shares the history", []string{question + `}`, question + `}`}, 0, nil, nil, []span{read, history("Unset"), read}},
		{"a wait", []string{waiting + `10000}}`}, 3, nil, nil, []span{wait("Unset", "true", "3"), read, history("Unset")}},
		{"a wait in vain", []string{waiting + `0}}`}, 0, nil, nil, []span{wait("Unset", "false", "1"), read, history("Unset")}},
		{"a wait that fails", []string{waiting + `0}}`}, 0, down, nil, []span{wait("Error", "false", "1")}},
		{"no history", []string{question + `}`}, 0, nil, down, []span{read, history("Error")}},
	} {
		t.Run(test.name, func(t *testing.T) {
			spans, looks := tracetest.NewInMemoryExporter(), 0
			h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
				c.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
				c.History = func(context.Context) (*state.History, error) { return &state.History{}, test.unknown }
				c.Applied = func(context.Context, state.Partition, int64, []state.Read) (bool, error) {
					looks++
					return looks == test.applied, test.unapplied
				}
			})
			for _, question := range test.questions {
				do(t, h, "POST", queryPath, question)
			}
			var got []span
			asked := map[trace.SpanID]bool{}
			stubs := spans.GetSpans()
			for _, s := range stubs {
				asked[s.SpanContext.SpanID()] = s.SpanKind == trace.SpanKindServer
			}
			for _, s := range stubs {
				if s.SpanKind == trace.SpanKindServer {
					continue
				}
				if !asked[s.Parent.SpanID()] {
					t.Errorf("%s is not the child of a question", s.Name)
				}
				got = append(got, span{s.Name, s.SpanKind.String(), s.Status.Code.String(), attributes(s.Attributes)})
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("spans (-want +got):\n%s", diff)
			}
			if text := fmt.Sprintf("%+v", stubs); strings.Contains(text, "jane") {
				t.Errorf("the spans name an entity: %s", text)
			}
		})
	}
}

// Requests that are no questions, or whose trace is not sampled, have no span.
func TestNoSpans(t *testing.T) {
	spans := tracetest.NewInMemoryExporter()
	h := newHandler(&fakeReader{states: stored()}, func(c *setup) {
		c.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
	})
	for _, target := range []string{"/healthz", "/readyz", "/metrics", "/v1/features", "/v1/status"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", target, nil))
	}
	r := httptest.NewRequest("GET", "/v1/features/device_tx_7d?device_id=d1", nil)
	r.Header.Set("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00")
	h.ServeHTTP(httptest.NewRecorder(), r)
	if got := spans.GetSpans(); len(got) > 0 {
		t.Errorf("spans were made without a provider: %+v", got)
	}
}
