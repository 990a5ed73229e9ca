// Package tracing exports spans to an OpenTelemetry collector. Other packages create spans with
// OpenTelemetry's API, and only this one exports them.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// Config defines which spans are exported, and where to.
type Config struct {
	Endpoint    string  // URL of a collector that accepts OTLP over HTTP; empty for no spans
	SampleRatio float64 // share of the traces that begin here, 0 to 1
	Version     string  // of the program
	Logger      *slog.Logger
}

// Start returns the tracer provider, nil without an endpoint, and a function that flushes the
// remaining spans and shuts the provider down. It does not contact the collector; spans for an
// unreachable collector are dropped and the log says so. Headers, certificates, timeouts and the
// service's name come from the standard OTEL_… variables. An unusable variable is an error; an
// unusable certificate is only logged.
func Start(ctx context.Context, c Config) (trace.TracerProvider, func(context.Context) error, error) {
	if c.Endpoint == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	// The library reports errors to a logger and a handler of the whole process.
	otel.SetLogger(logr.FromSlogHandler(c.Logger.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Logger.Warn("spans are lost", "error", err) }))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("weir"), semconv.ServiceVersion(c.Version)),
		resource.WithFromEnv(), // later options override earlier ones
	)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about), sdk.WithSampler(newSampler(c.SampleRatio)))
	return provider, provider.Shutdown, nil
}

// newSampler follows the decision of a span's parent. It samples a trace that begins here if it
// links to a sampled trace, and otherwise by ratio.
func newSampler(ratio float64) sdk.Sampler {
	return sdk.ParentBased(linked{sdk.TraceIDRatioBased(ratio)})
}

// linked samples every span that links to a sampled trace, so that the link leads to a trace that
// exists.
type linked struct{ sdk.Sampler }

func (s linked) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if slices.ContainsFunc(p.Links, func(l trace.Link) bool { return l.SpanContext.IsSampled() }) {
		return sdk.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}
