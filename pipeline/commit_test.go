package pipeline

import (
	"context"
	"log/slog"
	"maps"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/pipeline/group"
	"github.com/weir-stream/weir/state"
)

// Offsets that have not moved are committed again only once a minute, and in another generation.
func TestUnmovedOffsetsAreNotCommitted(t *testing.T) {
	t.Parallel()
	a, b := state.Partition{Topic: "a"}, state.Partition{Topic: "b"}
	first, second := new(group.Generation), new(group.Generation)
	first.ID, second.ID = 1, 2
	start := time.UnixMilli(0)
	var before commitLog
	for i, step := range []struct {
		generation *group.Generation
		after      time.Duration
		offsets    map[state.Partition]int64
		lost       bool // the brokers refuse them
		want       map[state.Partition]int64
	}{
		{first, 0, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{first, 1, map[state.Partition]int64{a: 1, b: 1}, false, nil},
		{first, 2, map[state.Partition]int64{a: 2, b: 1}, true, map[state.Partition]int64{a: 2}},
		{first, 3, map[state.Partition]int64{a: 2, b: 1}, false, map[state.Partition]int64{a: 2}},
		{first, 4, map[state.Partition]int64{a: 1}, false, map[state.Partition]int64{a: 1}}, // read again from further back
		{second, 5, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{second, 64, map[state.Partition]int64{a: 1, b: 1}, false, nil},
		{second, 65, map[state.Partition]int64{a: 1, b: 1}, false, map[state.Partition]int64{a: 1, b: 1}},
		{second, 66, map[state.Partition]int64{a: 1, b: 1}, false, nil},
	} {
		got := before.changes(step.generation, step.offsets, start.Add(step.after*time.Second))
		if !maps.Equal(got, step.want) {
			t.Errorf("step %d committed %v, want %v", i, got, step.want)
		}
		if !step.lost {
			maps.Copy(before.offsets, got)
		}
	}
}

// A processor that stops does not wait for a coordinator that does not answer: neither for the commit under way, nor for
// the last one.
func TestCommitsAreGivenUp(t *testing.T) {
	t.Parallel()
	p := state.Partition{Topic: "payments"}
	broker := kafkatest.Embedded(t, map[string]int{p.Topic: 1})
	asked := make(chan struct{}, 1)
	broker.ControlKey(int16(kmsg.OffsetCommit), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		select {
		case asked <- struct{}{}:
		default:
		}
		return nil, nil, true // no answer
	})
	transport, log := new(kafka.Transport), slog.New(slog.DiscardHandler)
	t.Cleanup(transport.CloseIdleConnections)
	member := group.New(group.Config{
		Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...), Group: "g", Topics: []string{p.Topic}, Release: func([]state.Partition) {},
		SessionTimeout: 30 * time.Second, RebalanceTimeout: 30 * time.Second, HeartbeatInterval: time.Second, Logger: log,
	})
	g, err := member.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = member.Leave(context.Background()) })
	c := newCommitter(log)
	c.generation.Store(g)
	c.commit(map[state.Partition]int64{p: 1})
	<-asked
	c.commit(map[state.Partition]int64{p: 2})
	closed := make(chan struct{})
	go func() {
		c.close(time.Millisecond)
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second): // half of what a commit waits for an answer
		t.Error("the committer waits for the coordinator")
	}
}
