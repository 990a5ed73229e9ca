package lists

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/value"
)

// listOf is a list of texts in a topic.
func listOf(topic string) *features.Table {
	list := features.NewList("blocked_cards", topic, value.String)
	list.MaxRows, list.MaxBytes = 1000, 1<<20
	return list
}

// changes are those that add so many values to a list.
func changes(t *testing.T, list *features.Table, n int) (all []Written) {
	t.Helper()
	for i := range n {
		w, err := Record(list, Entry{Value: fmt.Sprint("c", i), Who: "ann", Why: "case 17"}, false)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

// Changes are written together, after failures that pass, and otherwise none of them.
func TestWriteIsWhole(t *testing.T) {
	const n = 300
	broker := kafkatest.Embedded(t, map[string]int{"lists": 5})
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport, Timeout: 10 * time.Second}
	list := listOf("lists")
	lengths := func() (all []int64) {
		for p := range 5 {
			info, err := client.ListOffsets(t.Context(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{"lists": {kafka.LastOffsetOf(p)}}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.Topics["lists"][0].LastOffset)
		}
		return all
	}

	fault := broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "lists", Err: kerr.NotEnoughReplicas, Count: -1})
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := Write(ctx, client, list, changes(t, list, n)); err == nil || !strings.HasPrefix(err.Error(), "topic lists: ") {
		t.Errorf("brokers that refuse: %v", err)
	}
	if got := lengths(); slices.Max(got) > 0 {
		t.Fatalf("a change that failed left partitions of %d", got)
	}
	fault.Remove()
	broker.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "lists", Err: kerr.NotLeaderForPartition, Count: 2})
	if err := Write(t.Context(), client, list, changes(t, list, n)); err != nil {
		t.Fatal(err)
	}
	// All are in the first one: a removal must be in the partition of its entry, also once the topic has got more.
	if got := lengths(); !slices.Equal(got, []int64{n, 0, 0, 0, 0}) {
		t.Errorf("the partitions have %d records, want %d in the first", got, n)
	}
	if err := Write(t.Context(), client, list, changes(t, list, 20_000)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too many changes: %v", err)
	}
	other := listOf("none")
	want := "topic none: there is no such topic or partition: check the name, or create the topic"
	if err := Write(t.Context(), client, other, changes(t, other, 1)); err == nil || err.Error() != want {
		t.Errorf("a topic that does not exist: %v, want %s", err, want)
	}
}

// Without brokers a change fails when its time is up.
func TestWriteWithoutBrokers(t *testing.T) {
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &kafka.Client{Addr: kafka.TCP("127.0.0.1:1"), Transport: transport, Timeout: 10 * time.Second}
	list := listOf("lists")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := Write(ctx, client, list, changes(t, list, 1)); err == nil || err.Error() != "topic lists: nothing listens at 127.0.0.1:1: check the address, and that the server runs" {
		t.Errorf("got %v", err)
	}
}

// White space around a value is a mistake, but one that is in a list can be removed.
func TestWhiteSpaceAroundAValue(t *testing.T) {
	for _, v := range []string{" c1", "c1\t", "c1\n"} {
		if _, err := Record(listOf("lists"), Entry{Value: v}, false); err == nil || err.Error() != fmt.Sprintf("%q begins or ends with white space: leave that out", v) {
			t.Errorf("%q is added: %v", v, err)
		}
		if w, err := Record(listOf("lists"), Entry{Value: v}, true); err != nil || w.Value != v {
			t.Errorf("%q is removed as %q: %v", v, w.Value, err)
		}
	}
}
