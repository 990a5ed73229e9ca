// Package tracing sends spans to a collector of OpenTelemetry. It alone knows
// how spans leave the process; others make them with OpenTelemetry's API.
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

// Config says where spans are sent, and which.
type Config struct {
	Endpoint    string  // URL of a collector that takes OTLP over HTTP; empty for no spans
	SampleRatio float64 // of the traces that begin here, 0 to 1
	Version     string  // of the program
	Logger      *slog.Logger
}

// Start makes the provider of spans, nil where there is no endpoint, and what
// sends all that are left and ends it. Nothing is asked of the collector yet; a
// collector that is away costs its spans, and the log says so. Headers,
// certificates, timeouts and the service's name are those of the standard
// OTEL_… variables. The error is that such a variable cannot be used; that a
// certificate cannot, only the log says.
func Start(ctx context.Context, c Config) (trace.TracerProvider, func(context.Context) error, error) {
	if c.Endpoint == "" {
		return nil, func(context.Context) error { return nil }, nil
	}
	// The library tells the whole process's logger and function what goes wrong.
	otel.SetLogger(logr.FromSlogHandler(c.Logger.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { c.Logger.Warn("spans are lost", "error", err) }))
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(c.Endpoint))
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: %w", err)
	}
	about, err := resource.New(ctx,
		resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("weir"), semconv.ServiceVersion(c.Version)),
		resource.WithFromEnv(), // the last is the strongest
	)
	if err != nil {
		return nil, nil, fmt.Errorf("tracing: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	provider := sdk.NewTracerProvider(sdk.WithBatcher(exporter), sdk.WithResource(about), sdk.WithSampler(newSampler(c.SampleRatio)))
	return provider, provider.Shutdown, nil
}

// newSampler keeps spans whose caller has kept its own, those that link to a
// trace that is kept, and else a share of the traces.
func newSampler(ratio float64) sdk.Sampler {
	return sdk.ParentBased(linked{sdk.TraceIDRatioBased(ratio)})
}

// linked keeps all that links to a trace that is kept: who follows the link
// shall find something.
type linked struct{ sdk.Sampler }

func (s linked) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	if slices.ContainsFunc(p.Links, func(l trace.Link) bool { return l.SpanContext.IsSampled() }) {
		return sdk.AlwaysSample().ShouldSample(p)
	}
	return s.Sampler.ShouldSample(p)
}
