package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/state"
)

const logins = `
streams:
  login: {topic: logins, timestamp: at, fields: {user: string}}
features:
  logins: COUNT(lifetime, login, user)
`

// Definitions with another topic make the processor join the group for it, without leaving; without
// the topic, it stops reading it.
func TestReloadOfOtherTopics(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	if err := b.broker.CreateTopic("logins", 2, nil); err != nil {
		t.Fatal(err)
	}
	both := defined.Registry(t, definitions+"---"+logins)
	login := func(n int) {
		for i := range n {
			b.write(kafka.Message{Topic: "logins", Key: []byte{byte(i % 2)}, Value: fmt.Appendf(nil, `{"at":%d,"user":"u1"}`, at), Time: time.UnixMilli(at)})
		}
	}
	login(3) // before the topic is read
	b.write(payments(0, 100)...)
	b.run()
	b.expect(100)
	if since := b.since(both, "logins"); since != state.MaxTime {
		t.Errorf("complete since %d, although no processor reads the topic", since)
	}
	var left atomic.Int64
	b.broker.ControlKey(int16(kmsg.LeaveGroup), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.KeepControl()
		left.Add(1)
		return nil, nil, false
	})
	b.processor.Reload(both)
	login(2)
	b.write(payments(100, 300)...)
	b.expect(300)
	f, _ := both.Feature("logins")
	count := func() string {
		var reading query.Reading
		reading.Reset(at)
		reading.Want(f, "u1", at)
		if err := reading.Read(context.Background(), b.store); err != nil {
			t.Fatal(err)
		}
		var a query.Answer
		reading.Next(&a)
		return string(a.Value.AppendText(nil))
	}
	testkit.Eventually(t, time.Minute, "logins", func() (bool, string) { return count() == "5", count() })
	if since := b.since(both, "logins"); since != state.MinTime {
		t.Errorf("the topic was read from its beginning, but its features are complete only since %d", since)
	}
	admit := b.refuseJoins()
	b.processor.Reload(b.registry)
	testkit.Eventually(t, time.Minute, "the definitions without the topic are applied", func() (bool, string) {
		h, err := b.store.History(t.Context())
		if err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(h.PlanEpochs, func(e state.PlanEpoch) bool {
			return e.Topic == "payments" && e.Version == b.registry.Plan().Version && e.Last == state.MaxTime
		}), fmt.Sprint(h.PlanEpochs)
	})
	login(2)
	b.write(payments(300, 400)...)
	b.expect(400)
	admit()
	b.awaitAssigned(partitions)
	b.write(payments(400, 500)...)
	b.expect(500)
	b.committed(500)
	if got := count(); got != "5" {
		t.Errorf("%s logins were counted, want 5: the topic is no longer read", got)
	}
	b.processor.Reload(both)
	testkit.Eventually(t, time.Minute, "logins that came while the topic was not read", func() (bool, string) { return count() == "7", count() })
	if n := left.Load(); n > 0 {
		t.Errorf("the processor left the group %d times to read other topics", n)
	}
}

// refuseJoins keeps the group's members as they are until admit is called.
func (b *bench) refuseJoins() (admit func()) {
	var admits atomic.Bool
	b.broker.ControlKey(int16(kmsg.JoinGroup), func(request kmsg.Request) (kmsg.Response, error, bool) {
		b.broker.KeepControl()
		if admits.Load() {
			return nil, nil, false
		}
		response := request.ResponseKind().(*kmsg.JoinGroupResponse)
		response.ErrorCode = int16(kafka.GroupLoadInProgress)
		return response, nil, true
	})
	return func() { admits.Store(true) }
}

// Definitions with a missing topic do not delay the others.
func TestReloadWithAMissingTopic(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	both := defined.Registry(t, definitions+"---"+logins)
	b.run()
	b.write(payments(0, 100)...)
	b.expect(100)
	b.processor.Reload(both)
	testkit.Eventually(t, time.Minute, "readiness names the topic", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		part, ok := err.(interface{ Degraded() bool })
		return ok && part.Degraded() && strings.Contains(err.Error(), `the assigned partitions go on, but no others can be added: topic "logins"`), fmt.Sprint(err)
	})
	b.write(payments(100, 200)...)
	b.expect(200)
	if err := b.broker.CreateTopic("logins", 2, nil); err != nil {
		t.Fatal(err)
	}
	b.awaitAssigned(partitions + 2)
	b.awaitReady(b.processor)
}

func (b *bench) awaitAssigned(n int64) {
	b.t.Helper()
	testkit.Eventually(b.t, time.Minute, "partitions assigned", func() (bool, string) {
		got := b.processor.Stats().Assigned
		return got == n, fmt.Sprint(got)
	})
}
