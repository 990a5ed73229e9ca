package pipeline_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/segmentio/kafka-go"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// traced is payment i, of the first partition, with a header traceparent.
func traced(i int, parent string) kafka.Message {
	m := payment(partitions * i)
	m.Headers = []kafka.Header{{Key: "traceparent", Value: []byte(parent)}}
	return m
}

// parent is the traceparent of trace n, sampled or not.
func parent(n int, kept bool) string {
	flags := 0
	if kept {
		flags = 1
	}
	return fmt.Sprintf("00-%032x-%016x-%02x", n+1, n+1, flags)
}

// await waits until a number of records is applied, and stops the processor.
func (b *bench) await(applied int) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "records applied", func() (bool, string) {
		s := b.processor.Stats()
		return s.Applied == int64(applied), fmt.Sprintf("%+v", s)
	})
	if err := b.stop(); err != nil {
		b.t.Fatal(err)
	}
}

// A batch has one span, with links to the sampled traces of its records, up to the limit.
func TestSpanOfABatch(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spans := tracetest.NewInMemoryExporter()
	b.config.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
	b.config.Workers = 1
	records := []kafka.Message{payment(0), traced(1, parent(90, false)), traced(2, "00-malformed"), traced(3, parent(0, true))}
	for i := range 40 {
		records = append(records, traced(4+i, parent(i, true))) // the first of them once more
	}
	bytes := 0
	for _, m := range records {
		bytes += len(m.Value)
	}
	b.write(records...)
	b.run()
	b.await(len(records))
	got := spans.GetSpans()
	if len(got) != 1 {
		t.Fatalf("there are %d spans, want 1, that of the only batch with records: %+v", len(got), got)
	}
	var links, want []string
	for _, l := range got[0].Links {
		links = append(links, fmt.Sprintf("00-%v-%v-%v", l.SpanContext.TraceID(), l.SpanContext.SpanID(), l.SpanContext.TraceFlags()))
	}
	for i := range 32 {
		want = append(want, parent(i, true))
	}
	if diff := cmp.Diff(want, links); diff != "" {
		t.Error("links:\n", diff)
	}
	numbers, words := map[string]int64{}, map[string]string{}
	for _, a := range got[0].Attributes {
		if a.Value.Type() == attribute.INT64 {
			numbers[string(a.Key)] = a.Value.AsInt64()
		} else {
			words[string(a.Key)] = a.Value.AsString()
		}
	}
	// A batch cut for a commit moves all partitions and all shards.
	if n := numbers["weir.batch.partitions"]; n != 1 && n != partitions {
		t.Errorf("the span has %d partitions, want 1 or %d", n, partitions)
	}
	if n := numbers["weir.batch.calls"]; n < 1 || n > 8 {
		t.Errorf("the span has %d calls for 8 shards", n)
	}
	delete(numbers, "weir.batch.partitions")
	delete(numbers, "weir.batch.calls")
	if diff := cmp.Diff(map[string]int64{"messaging.batch.message_count": int64(len(records)), "weir.batch.bytes": int64(bytes)}, numbers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{
		"messaging.system": "kafka", "messaging.operation.type": "process", "messaging.operation.name": "apply",
		"messaging.consumer.group.name": b.config.Group,
	}, words); diff != "" {
		t.Error(diff)
	}
	if got[0].Name != "apply" || got[0].Parent.IsValid() || got[0].Status.Code != codes.Unset {
		t.Errorf("unexpected name, parent or status of the span %+v", got[0])
	}
}

// shyWriter accepts a batch the second time.
type shyWriter struct {
	store.Writer
	asked int
}

func (w *shyWriter) Apply(ctx context.Context, b *state.Batch) error {
	if w.asked++; w.asked == 1 {
		return fmt.Errorf("connection refused")
	}
	return w.Writer.Apply(ctx, b)
}

// A batch's span records what the batch waited for.
func TestSpanRecordsWaits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	spans := tracetest.NewInMemoryExporter()
	b.config.TracerProvider = sdk.NewTracerProvider(sdk.WithSyncer(spans))
	b.config.Workers = 1
	b.config.CommitInterval = time.Minute // so that an empty batch is not the first
	b.config.Store = writing{b.store, func() store.Writer { return &shyWriter{Writer: b.store.NewWriter()} }}
	b.write(payment(0))
	b.run()
	b.await(1)
	got := spans.GetSpans()
	if len(got) != 1 || len(got[0].Events) != 1 || got[0].Events[0].Name != "exception" {
		t.Fatalf("the spans are %+v, want one with one error", got)
	}
}
