package pipeline

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-stream/weir/pipeline/fetch"
)

// maxLinks is how many records' traces a batch's span links to. A batch holds thousands of records,
// and collectors cut spans that grow too large.
const maxLinks = 32

// tracing makes a span for each batch. Its zero value makes none, and does not read records'
// headers.
type tracing struct {
	tracer trace.Tracer
	group  string
}

func newTracing(cfg *Config) tracing {
	if cfg.TracerProvider == nil {
		return tracing{}
	}
	return tracing{cfg.TracerProvider.Tracer("github.com/weir-stream/weir/pipeline"), cfg.Group}
}

// link records the span in a record's traceparent, if its trace is sampled. Records of one span
// count once.
func (t tracing) link(b *workerBatch, rec *fetch.Record) {
	if t.tracer == nil || len(b.links) == maxLinks {
		return
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), carrier{rec.Headers})
	of := trace.SpanContextFromContext(ctx)
	if !of.IsSampled() || slices.ContainsFunc(b.links, func(l trace.Link) bool { return l.SpanContext.Equal(of) }) {
		return
	}
	b.links = append(b.links, trace.Link{SpanContext: of})
}

// carrier passes the headers of a record to the propagator of trace contexts, which asks for two of them by name.
type carrier struct{ fetch.Headers }

func (c carrier) Get(key string) string {
	value, _ := c.Last(key)
	return string(value)
}

func (carrier) Set(string, string) {}

func (carrier) Keys() []string { return nil }

// batch begins the span of a batch that is to be applied. A batch without records only checks the progress, and has no
// span.
func (t tracing) batch(ctx context.Context, b *workerBatch) (context.Context, trace.Span) {
	if t.tracer == nil || b.events == 0 {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, "apply", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(b.links...), trace.WithAttributes(
		semconv.MessagingSystemKafka, semconv.MessagingOperationTypeProcess, semconv.MessagingOperationName("apply"),
		semconv.MessagingConsumerGroupName(t.group), semconv.MessagingBatchMessageCount(b.events),
		attribute.Int("weir.batch.bytes", b.bytes), attribute.Int("weir.batch.partitions", len(b.Ranges)),
	))
}

// ended ends a batch's span with its result.
func ended(span trace.Span, b *workerBatch) {
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("weir.batch.calls", b.Calls))
		for _, err := range b.failures {
			if err != nil {
				span.SetStatus(codes.Error, err.Error())
			}
		}
		if b.unapplied {
			span.SetStatus(codes.Error, "the store did not take the batch before the time to shut down was over")
		}
	}
	span.End()
}
