package serve

import (
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/serve/reply"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// tracing makes spans of questions. Its zero value makes none.
type tracing struct {
	tracer trace.Tracer
	system attribute.KeyValue // of the store
}

func newTracing(p trace.TracerProvider, store string) tracing {
	if p == nil {
		return tracing{}
	}
	return tracing{p.Tracer("github.com/weir-stream/weir/serve"), semconv.DBSystemNameKey.String(strings.ToLower(store))}
}

// question begins the span of a question, in the trace of the request's traceparent. It is named
// after the route, because paths and queries name entities.
func (t tracing) question(r *http.Request) (context.Context, trace.Span) {
	if t.tracer == nil {
		return r.Context(), noop.Span{}
	}
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	_, route, _ := strings.Cut(r.Pattern, " ")
	return t.tracer.Start(ctx, r.Pattern, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(route),
	))
}

// ended ends a question's span with its outcome; refusal is nil if it was answered.
func ended(span trace.Span, refusal *reply.Error) {
	switch {
	case !span.IsRecording():
	case refusal == nil:
		span.SetAttributes(semconv.HTTPResponseStatusCode(http.StatusOK))
	default:
		span.SetAttributes(semconv.HTTPResponseStatusCode(refusal.Status), semconv.ErrorTypeKey.String(string(refusal.Code)))
		if refusal.Status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, "")
		}
	}
}

// reader makes a span for each round trip in which a reader reads for a question.
func (t tracing) reader(from query.Reader, q *asked) query.Reader {
	if t.tracer == nil {
		return from
	}
	return tracedReader{from, t, len(q.features), len(q.entities.sent)}
}

// tracedReader records the numbers of reads. Spans contain no values of entities.
type tracedReader struct {
	query.Reader
	tracing
	features, entities int
}

func (r tracedReader) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	ctx, span := r.tracer.Start(ctx, "read", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		r.system,
		attribute.Int("weir.features", r.features), attribute.Int("weir.entities", r.entities),
		attribute.Int("weir.reads", len(reads)),
	))
	defer span.End()
	states, err := r.Reader.Read(ctx, reads)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	return states, err
}

// wait begins the span of a question's wait for an event.
func (t tracing) wait(ctx context.Context) (context.Context, trace.Span) {
	if t.tracer == nil {
		return ctx, noop.Span{}
	}
	return t.tracer.Start(ctx, "wait")
}

// waited ends that span, with the number of checks for the event.
func waited(span trace.Span, applied bool, looks int, err error) {
	span.SetAttributes(attribute.Bool("weir.applied", applied), attribute.Int("weir.looks", looks))
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// historyReader makes a span for each read of the history by a question.
func (t tracing) historyReader(from store.Reader) func(context.Context) (*state.History, error) {
	if t.tracer == nil {
		return from.History
	}
	return func(ctx context.Context) (*state.History, error) {
		if !trace.SpanContextFromContext(ctx).IsValid() {
			return from.History(ctx)
		}
		ctx, span := t.tracer.Start(ctx, "history", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(t.system))
		defer span.End()
		history, err := from.History(ctx)
		if err != nil {
			span.SetStatus(codes.Error, err.Error())
		}
		return history, err
	}
}
