package group

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/kafkatest"
	"github.com/weir-stream/weir/state"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// running is a member that joins each generation at once.
type running struct {
	t    *testing.T
	m    *Member
	stop context.CancelFunc
	over chan struct{}

	mu         sync.Mutex
	generation *Generation
	joined     int
	released   []state.Partition // by Next, in all generations
	err        error             // that ended it
}

func config(t *testing.T, broker *kafkatest.Broker, group, instance string, topics ...string) Config {
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	return Config{
		Transport: transport, Bootstrap: kafka.TCP(broker.Addrs()...), Group: group, InstanceID: instance, Topics: topics,
		SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second, HeartbeatInterval: 100 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	}
}

// run joins until it is stopped, which leaves the group.
func run(t *testing.T, cfg Config) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{t: t, over: make(chan struct{})}
	cfg.Release = func(partitions []state.Partition) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.released = append(r.released, partitions...)
	}
	r.m = New(cfg)
	r.stop = sync.OnceFunc(func() { cancel(); <-r.over })
	t.Cleanup(r.stop)
	go func() {
		defer close(r.over)
		for ctx.Err() == nil {
			g, err := r.m.Next(ctx)
			r.mu.Lock()
			r.generation, r.err = g, err
			r.joined++
			r.mu.Unlock()
			if _, fenced := errors.AsType[*FencedError](err); fenced {
				return
			}
			if err == nil {
				select {
				case <-g.Done():
				case <-ctx.Done():
				}
			}
		}
		if err := r.m.Leave(context.Background()); err != nil {
			t.Errorf("leaving the group failed: %v", err)
		}
	}()
	return r
}

// now returns the current generation, nil before the first one, and the number of generations so far.
func (r *running) now() (*Generation, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.generation, r.joined, r.err
}

// share waits until each member has `want` partitions, in one generation.
func share(t *testing.T, want int, members ...*running) (all [][]state.Partition) {
	t.Helper()
	testkit.Eventually(t, time.Minute, fmt.Sprintf("%d partitions each", want), func() (bool, string) {
		all = nil
		text, ids := "", []int32{}
		for _, r := range members {
			g, _, err := r.now()
			if g == nil {
				return false, fmt.Sprint("no generation: ", err)
			}
			text += fmt.Sprintln(g.ID, g.Partitions)
			all, ids = append(all, g.Partitions), append(ids, g.ID)
			if len(g.Partitions) != want || ids[0] != g.ID {
				return false, text
			}
		}
		return true, text
	})
	return all
}

// A static member that ends and returns gets its partitions back, and no other member notices: there is no new
// generation.
func TestStaticMemberReturns(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, group := kafkatest.CreateTopic(t, broker, 4), testkit.Namespace(t)
	a := run(t, config(t, broker, group, "a", topic))
	b := run(t, config(t, broker, group, "b", topic))
	before := share(t, 2, a, b)
	instances := []string{"a", "b"}
	members := []*running{a, b}
	for i, instance := range instances { // one of them leads the group
		other := members[1-i]
		generation, joined, _ := other.now()
		members[i].stop()
		members[i] = run(t, config(t, broker, group, instance, topic))
		after := share(t, 2, members...)
		if !slices.Equal(after[i], before[i]) {
			t.Errorf("%s returned and was given %v, want the previous %v", instance, after[i], before[i])
		}
		if now, times, err := other.now(); now != generation || times != joined || err != nil {
			t.Errorf("when %s returned, the other member joined again: %d times before, %d after: error %v", instance, joined, times, err)
		}
		if err := generation.Commit(t.Context(), map[state.Partition]int64{before[1-i][0]: 0}); err != nil {
			t.Errorf("the other cannot commit: %v", err)
		}
	}
}

// A static member that returns with other topics is assigned those, although the broker would give it its earlier
// partitions.
func TestStaticMemberWithOtherTopics(t *testing.T) {
	broker := kafkatest.Shared(t)
	one, two, group := kafkatest.CreateTopic(t, broker, 2), kafkatest.CreateTopic(t, broker, 3), testkit.Namespace(t)
	a := run(t, config(t, broker, group, "a", one))
	share(t, 2, a)
	a.stop()
	share(t, 5, run(t, config(t, broker, group, "a", one, two)))
}

// Members share evenly and keep what they had; the partitions of a member that leaves go to others at once.
func TestMembersShare(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, group := kafkatest.CreateTopic(t, broker, 6), testkit.Namespace(t)
	a := run(t, config(t, broker, group, "", topic))
	share(t, 6, a)
	b := run(t, config(t, broker, group, "", topic))
	two := share(t, 3, a, b)
	c := run(t, config(t, broker, group, "", topic))
	three := share(t, 2, a, b, c)
	for i := range two {
		for _, p := range three[i] {
			if !slices.Contains(two[i], p) {
				t.Errorf("member %d was given %v when another joined, although it had only %v", i, p, two[i])
			}
		}
	}
	c.stop()
	again := share(t, 3, a, b)
	for i := range again {
		for _, p := range three[i] {
			if !slices.Contains(again[i], p) {
				t.Errorf("member %d has lost %v when another left", i, p)
			}
		}
	}
	g, _, _ := a.now()
	if err := g.Commit(t.Context(), map[state.Partition]int64{g.Partitions[0]: 7}); err != nil {
		t.Fatal(err)
	}
	reply, err := broker.Client().OffsetFetch(t.Context(), &kafka.OffsetFetchRequest{
		GroupID: group, Topics: map[string][]int{topic: {int(g.Partitions[0].ID)}},
	})
	if err != nil || reply.Topics[topic][0].CommittedOffset != 7 {
		t.Errorf("committed %+v, error %v; want offset 7", reply, err)
	}
}

// A member that loses partitions to another releases only these, each once.
func TestRebalanceIsCooperative(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, group := kafkatest.CreateTopic(t, broker, 6), testkit.Namespace(t)
	a := run(t, config(t, broker, group, "", topic))
	before := share(t, 6, a)[0]
	b := run(t, config(t, broker, group, "", topic))
	after := share(t, 3, a, b)
	b.stop()
	again := share(t, 6, a)[0]
	a.mu.Lock()
	defer a.mu.Unlock()
	if slices.SortFunc(a.released, compare); !slices.Equal(a.released, after[1]) {
		t.Errorf("a released %v, b was given %v", a.released, after[1])
	}
	if !slices.Equal(before, again) {
		t.Errorf("a had %v before b joined, and has %v after b left; want the same", before, again)
	}
}

func compare(a, b state.Partition) int {
	return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.ID, b.ID))
}

// A member evicted by the broker releases all its partitions before it joins again.
func TestEvictedMember(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, group := kafkatest.CreateTopic(t, broker, 2), testkit.Namespace(t)
	a := run(t, config(t, broker, group, "", topic))
	g := share(t, 2, a)[0]
	had, _, _ := a.now()
	leaver := New(config(t, broker, group, "", topic)) // an operator takes it out of the group
	leaver.id = had.member
	if err := leaver.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "a is a member again", func() (bool, string) {
		now, _, err := a.now()
		return now != nil && now.member != had.member && len(now.Partitions) == 2, fmt.Sprint(err)
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.Equal(a.released, g) {
		t.Errorf("the member released %v, want all of %v", a.released, g)
	}
}

// When the group moves to another broker, its members follow without joining again.
func TestCoordinatorMoves(t *testing.T) {
	broker := kafkatest.Embedded(t, map[string]int{"payments": 2})
	transport := &kafka.Transport{MetadataTTL: 200 * time.Millisecond}
	t.Cleanup(transport.CloseIdleConnections)
	found, beats := make(chan struct{}, 100), make(chan struct{}, 100)
	var refused atomic.Int32
	broker.ControlKey(int16(kmsg.FindCoordinator), func(kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		found <- struct{}{}
		return nil, nil, false
	})
	broker.ControlKey(int16(kmsg.Heartbeat), func(r kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		beats <- struct{}{}
		if refused.Add(1) > 3 {
			return nil, nil, false
		}
		response := r.ResponseKind().(*kmsg.HeartbeatResponse)
		response.Version, response.ErrorCode = r.GetVersion(), int16(kafka.NotCoordinatorForGroup)
		return response, nil, true
	})
	a := run(t, Config{
		Transport: transport, Bootstrap: kafka.TCP(broker.ListenAddrs()...), Group: "g", Topics: []string{"payments"},
		SessionTimeout: 10 * time.Second, RebalanceTimeout: 20 * time.Second, HeartbeatInterval: 20 * time.Millisecond,
		Logger: slog.New(slog.DiscardHandler),
	})
	for range 8 {
		<-beats
	}
	for range 4 { // when it joined, and after each refusal
		<-found
	}
	if g, joined, err := a.now(); joined != 1 || g == nil || len(a.released) > 0 {
		t.Errorf("joined %d times, released %v, error %v; want once and none", joined, a.released, err)
	}
}

// Of two processes with the same instance ID the later one stays, and the earlier one gets an error that says why.
func TestFencedMember(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, group := kafkatest.CreateTopic(t, broker, 2), testkit.Namespace(t)
	first := run(t, config(t, broker, group, "pod-0", topic))
	share(t, 2, first)
	second := run(t, config(t, broker, group, "pod-0", topic))
	share(t, 2, second)
	want := fmt.Sprintf(`another process has joined group %q with kafka.group_instance_id "pod-0": `+
		"give each process an ID of its own, such as the name of its pod", group)
	testkit.Eventually(t, time.Minute, "the first is fenced", func() (bool, string) {
		_, _, err := first.now()
		return err != nil && err.Error() == want && errors.Is(err, kafka.FencedInstanceID), fmt.Sprint(err)
	})
	share(t, 2, second)
}

// A group whose members use another assignment protocol is refused with advice.
func TestGroupOfAnotherProgram(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic, name := kafkatest.CreateTopic(t, broker, 1), testkit.Namespace(t)
	other, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{ID: name, Brokers: broker.Addrs(), Topics: []string{topic}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := New(config(t, broker, name, "", topic))
	_, err = m.Next(t.Context())
	if !errors.Is(err, kafka.InconsistentGroupProtocol) {
		t.Errorf("error %v, want %v", err, kafka.InconsistentGroupProtocol)
	}
}

// New partitions of a topic are assigned too.
func TestNewPartitions(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic := kafkatest.CreateTopic(t, broker, 1)
	a := run(t, config(t, broker, testkit.Namespace(t), "", topic))
	share(t, 1, a)
	addPartitions(t, broker, topic, 3)
	share(t, 3, a)
}

// Partitions that are added after the leader has counted them, and before it looks for new ones, are also assigned.
func TestNewPartitionsWhileAssigned(t *testing.T) {
	broker := kafkatest.Shared(t)
	topic := kafkatest.CreateTopic(t, broker, 1)
	cfg := config(t, broker, testkit.Namespace(t), "", topic)
	cfg.Transport = beforeSync{cfg.Transport, sync.OnceFunc(func() { addPartitions(t, broker, topic, 3) })}
	share(t, 3, run(t, cfg))
}

// beforeSync calls a function before the leader sends the assignment.
type beforeSync struct {
	kafka.RoundTripper
	do func()
}

func (b beforeSync) RoundTrip(ctx context.Context, addr net.Addr, request kafka.Request) (kafka.Response, error) {
	if request.ApiKey() == protocol.SyncGroup {
		b.do()
	}
	return b.RoundTripper.RoundTrip(ctx, addr, request)
}

func addPartitions(t *testing.T, broker *kafkatest.Broker, topic string, to int32) {
	t.Helper()
	reply, err := broker.Client().CreatePartitions(t.Context(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: to}},
	})
	if err != nil || reply.Errors[topic] != nil {
		t.Error(err, reply)
	}
}

// An assignment has the number of partitions that it was made for; one without it is refused.
func TestParseAssignment(t *testing.T) {
	assignment := kmsg.ConsumerMemberAssignment{UserData: []byte("logins:0,payments:5")}
	_, counts, err := parseAssignment(assignment.AppendTo(nil))
	if err != nil || !maps.Equal(counts, map[string]int32{"logins": 0, "payments": 5}) {
		t.Error(counts, err)
	}
	assignment.UserData = []byte("logins,payments:5")
	if _, _, err := parseAssignment(assignment.AppendTo(nil)); err == nil || !strings.Contains(err.Error(), `"logins"`) {
		t.Error(err)
	}
}
