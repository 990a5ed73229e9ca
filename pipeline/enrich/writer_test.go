package enrich

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

// After a failed request nothing more is written to its partition, so that the written events are a prefix of the
// wanted ones.
func TestWriteStopsAtAFailure(t *testing.T) {
	const n, fails = 60, 1 // three requests to each partition
	ctx := context.Background()
	broker := kafkatest.Embedded(t, map[string]int{"in": 2, "out": 2})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	requests := 0
	broker.Fault(kfake.Fault{
		Keys: []kmsg.Key{kmsg.Produce}, Topic: "out", Partitions: []int32{1}, Err: kerr.NotEnoughReplicas, Count: -1,
		When: func(kmsg.Request) bool { requests++; return requests > fails },
	})
	w := writer{&kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 10 * time.Second}}
	var events []*Event
	for i := range n {
		// Ten events fill a request.
		events = append(events, &Event{
			stream: &Stream{topic: "out"}, partition: state.Partition{Topic: "in", ID: int32(i % 2)},
			key: strconv.AppendInt(nil, int64(i), 10), value: make([]byte, requestBytes/10-100),
		})
	}
	failures := w.write(ctx, events)
	written := map[int][]string{}
	for p := range 2 {
		r := kafka.NewReader(kafka.ReaderConfig{Brokers: broker.ListenAddrs(), Topic: "out", Partition: p, MaxBytes: 10 << 20, MaxWait: 50 * time.Millisecond})
		defer r.Close()
		for i := range n {
			if i%2 == p && failures[i] == nil {
				m, err := r.ReadMessage(ctx)
				if err != nil {
					t.Fatal(err)
				}
				written[p] = append(written[p], string(m.Key))
			}
		}
	}
	var want [2][]string
	for i := range n {
		want[i%2] = append(want[i%2], strconv.Itoa(i))
	}
	if !slices.Equal(written[0], want[0]) {
		t.Errorf("written to partition 0: %q, want %q", written[0], want[0])
	}
	if most := len(written[1]); most == 0 || most == len(want[1]) || !slices.Equal(written[1], want[1][:most]) || len(failures) != len(want[1])-most {
		t.Errorf("written to partition 1: %q, failures %v; want the events up to the first failure", written[1], failures)
	}
}

// Events that are small enough for their topic one by one may be too large for it together. One that is too large on its
// own stops those after it.
func TestWriteIntoATopicOfSmallBatches(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"in": 1, "out": 1})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 10 * time.Second}
	if _, err := client.AlterConfigs(t.Context(), &kafka.AlterConfigsRequest{Resources: []kafka.AlterConfigRequestResource{{
		ResourceType: kafka.ResourceTypeTopic, ResourceName: "out",
		Configs: []kafka.AlterConfigRequestConfig{{Name: "max.message.bytes", Value: "50000"}},
	}}}); err != nil {
		t.Fatal(err)
	}
	const n, tooLarge = 10, 7
	var events []*Event
	for i := range n {
		size := 20_000
		if i == tooLarge {
			size = 60_000
		}
		events = append(events, &Event{
			stream: &Stream{topic: "out"}, partition: state.Partition{Topic: "in"}, key: strconv.AppendInt(nil, int64(i), 10), value: make([]byte, size),
		})
	}
	w := writer{client}
	failures := w.write(t.Context(), events)
	for i := range n {
		if failed := errors.Is(failures[i], kafka.MessageSizeTooLarge); failed != (i >= tooLarge) {
			t.Fatalf("event %d: error %v", i, failures[i])
		}
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: broker.ListenAddrs(), Topic: "out", MaxWait: 50 * time.Millisecond})
	defer r.Close()
	for i := range tooLarge {
		if m, err := r.ReadMessage(t.Context()); err != nil || string(m.Key) != strconv.Itoa(i) {
			t.Fatalf("record %d has the key %q, error %v", i, m.Key, err)
		}
	}
	if lag, err := r.ReadLag(t.Context()); err != nil || lag != 0 {
		t.Errorf("%d more records were written, error %v", lag, err)
	}
}

// A missing topic stops the ranges with events for it, as a whole, and no others.
func TestWriteWithoutOneOfTheTopics(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"in": 3, "out": 3})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	var events []*Event
	for _, of := range []struct {
		partition int32
		topic     string
	}{{0, "out"}, {1, "missing"}, {2, "out"}, {1, "out"}} {
		events = append(events, &Event{
			stream: &Stream{topic: of.topic}, partition: state.Partition{Topic: "in", ID: of.partition}, Range: int(of.partition), value: []byte("v"),
		})
	}
	w := writer{&kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 10 * time.Second}}
	failures := w.write(t.Context(), events)
	for i, n := range events {
		if failed := errors.Is(failures[i], kafka.UnknownTopicOrPartition); failed != (n.Range == 1) {
			t.Errorf("event %d for %s: error %v", i, n.stream.topic, failures[i])
		}
	}
	ends, err := w.client.ListOffsets(t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		"out": {kafka.LastOffsetOf(0), kafka.LastOffsetOf(1), kafka.LastOffsetOf(2)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range ends.Topics["out"] {
		if written := end.LastOffset > 0; written != (end.Partition != 1) {
			t.Errorf("partition %d has %d events", end.Partition, end.LastOffset)
		}
	}
}

func TestTarget(t *testing.T) {
	for _, test := range []struct {
		what string
		key  []byte
		in   int
		want int32
	}{
		{"as many partitions: that of the same number", []byte("k"), 4, 3},
		{"without a key too", nil, 4, 3},
		{"another number: by the key, as Kafka's producers do", []byte("foobar"), 2, 2},
		{"an empty key is one", []byte{}, 2, 1},
		{"without a key: by the number", nil, 9, 3},
	} {
		n := &Event{stream: &Stream{topic: "out"}, partition: state.Partition{Topic: "in", ID: 3}, key: test.key}
		if got := target(n, map[string]int{"in": test.in, "out": 4}); got.ID != test.want || got.Topic != "out" {
			t.Errorf("%s: %v, want %d", test.what, got, test.want)
		}
	}
}
