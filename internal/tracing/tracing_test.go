package tracing

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// of returns the span context of another process.
func of(kept bool) trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.TraceFlags(0).WithSampled(kept), Remote: true,
	})
}

func TestSampledSpans(t *testing.T) {
	var none trace.SpanContext
	for _, test := range []struct {
		name   string
		parent trace.SpanContext
		link   trace.SpanContext
		ratio  float64
		want   bool
	}{
		{"begun here, all", none, none, 1, true},
		{"begun here, none", none, none, 0, false},
		{"the caller keeps it", of(true), none, 0, true},
		{"the caller does not", of(false), none, 1, false},
		{"a link to what is kept", none, of(true), 0, true},
		{"a link to what is not", none, of(false), 0, false},
		{"a link to what is not, all", none, of(false), 1, true},
		{"a link, but the caller does not keep it", of(false), of(true), 1, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			tracer := sdk.NewTracerProvider(sdk.WithSampler(newSampler(test.ratio))).Tracer("test")
			_, span := tracer.Start(trace.ContextWithSpanContext(t.Context(), test.parent), "span",
				trace.WithLinks(trace.Link{SpanContext: test.link}))
			if got := span.SpanContext().IsSampled(); got != test.want {
				t.Errorf("the span is sampled: %v, want %v", got, test.want)
			}
		})
	}
}

func TestNoTracing(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1") // only the setting enables tracing
	provider, end, err := Start(t.Context(), Config{SampleRatio: 1})
	if provider != nil || err != nil {
		t.Errorf("Start = %v, %v; want none", provider, err)
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestUnusableVariable(t *testing.T) {
	t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team")
	_, _, err := Start(t.Context(), Config{Endpoint: "http://127.0.0.1:1", Logger: slog.New(slog.DiscardHandler)})
	if want := "tracing: OTEL_RESOURCE_ATTRIBUTES: error detecting resource: partial resource: missing value: [team]"; fmt.Sprint(err) != want {
		t.Errorf("\ngot  %v\nwant %s", err, want)
	}
}

// The library's own messages reach the process's log.
func TestUnusableCertificate(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", "tracing_test.go")
	var log strings.Builder
	_, end, err := Start(t.Context(), Config{Endpoint: "https://127.0.0.1:1", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	if err := end(t.Context()); err != nil {
		t.Error(err)
	}
	if want := `level=ERROR msg="create tls cert pool" err="failed to append certificate to the cert pool"`; !strings.Contains(log.String(), want) {
		t.Errorf("the log is %q, want %s", log.String(), want)
	}
}
