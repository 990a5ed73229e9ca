package pipeline_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/definition"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/pipeline/recovery"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// registryOf is that of the tests' definitions with more lines, and with events
// that are never long before their records.
func registryOf(t testing.TB, more ...string) *features.Registry {
	t.Helper()
	r, err := definition.Parse("test.yaml", []byte(strings.Replace(definitions, "timestamp: at", "timestamp: at\n    max_future: 1s", 1)+strings.Join(more, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// bySecond counts in tiles of a second, so that it can be seen since when.
const bySecond = "  by_second: COUNT(1h, payment, user, tile=1s, keep=30d)"

// stampAt is the time of the event i, and of its record.
func stampAt(i int) int64 { return at + int64(i)*200 }

func (b *bench) writeStamped(from, to int) {
	b.t.Helper()
	var list []kafka.Message
	for i := from; i < to; i++ {
		list = append(list, stamped(i))
	}
	b.write(list...)
}

func stamped(i int) kafka.Message {
	m := payment(i)
	m.Time = time.UnixMilli(stampAt(i))
	m.Value = fmt.Appendf(nil, `{"type":"payment","at":%d,"user":"u%d","cents":%d,"note":""}`, stampAt(i), i%7, i)
	return m
}

// since is since when a feature is complete.
func (b *bench) since(r *features.Registry, name string) int64 {
	b.t.Helper()
	f, ok := r.Feature(name)
	if !ok {
		b.t.Fatalf("no feature %s", name)
	}
	h, err := b.store.History(context.Background())
	if err != nil {
		b.t.Fatal(err)
	}
	return h.CompleteSince(f.Retained())
}

// expectSince waits until the events 0 to n-1 are applied, and wants of
// by_second exactly those that came since it says to be complete.
func (b *bench) expectSince(r *features.Registry, n int) (since int64) {
	b.t.Helper()
	b.expect(n)
	return b.expectSeconds(r, n)
}

// expectSeconds is expectSince without a look at the other features.
func (b *bench) expectSeconds(r *features.Registry, n int) (since int64) {
	b.t.Helper()
	b.committed(n)
	since = b.since(r, "by_second")
	if since == state.MaxTime {
		b.t.Fatal("by_second is not complete")
	}
	f, _ := r.Feature("by_second")
	// What lies before that may be pruned, whenever a key is compacted.
	kept := f.Series[0].Horizon(stampAt(n - 1))
	first := max(state.FloorDiv(max(since, 0)+999, 1000), kept)
	for user := range 7 {
		want, got := 0, 0
		for i := range n {
			if i%7 == user && stampAt(i) >= first*1000 {
				want++
			}
		}
		reads := []state.Read{{Series: f.Series[0], Entity: fmt.Sprintf("u%d", user), First: first, Last: max(first, stampAt(n)/1000)}}
		state, err := b.store.Read(context.Background(), reads)
		if err != nil {
			b.t.Fatal(err)
		}
		for _, c := range state[0].Buckets {
			got += int(c.Value.Num)
		}
		if got != want {
			b.t.Errorf("u%d has %d events since %d, want %d", user, got, since, want)
		}
	}
	return since
}

// Definitions change again and again while events flow: no event is lost or
// counts twice, and a new feature has all events since it says so.
func TestReloadWhileEventsFlow(t *testing.T) {
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	with, without := registryOf(t, bySecond), registryOf(t)
	b.config.Registry = without
	b.run()
	b.writeStamped(0, 50)
	b.expect(50)
	if since := b.since(with, "by_second"); since != state.MaxTime {
		t.Errorf("complete since %d, and nobody keeps it", since)
	}
	if since := b.since(with, "paid"); since != state.MinTime {
		t.Errorf("what was always kept is complete since %d", since)
	}
	var writing sync.WaitGroup
	writing.Go(func() {
		for i := 50; i < 3000; i += 10 {
			b.writeStamped(i, i+10)
		}
	})
	for i, r := range []*features.Registry{with, registryOf(t, bySecond, "  more: COUNT(1d, payment, user)"), without, with, registryOf(t, "  # nothing else"), with} {
		b.processor.Reload(r)
		b.awaitClaims(r, i)
	}
	writing.Wait()
	since := b.expectSince(with, 3000)
	if since < stampAt(50) || since > stampAt(3000)+1001 {
		t.Errorf("complete since %d, long before or after it was defined", since)
	}
	if since := b.since(with, "paid"); since != state.MinTime {
		t.Errorf("what was always kept is complete since %d", since)
	}
	b.writeStamped(3000, 4000)
	if again := b.expectSince(with, 4000); again != since {
		t.Errorf("complete since %d, and before since %d", again, since)
	}
	if err := b.processor.Ready(context.Background()); err != nil {
		t.Error(err)
	}
}

// awaitClaims waits until all partitions are applied by a registry's plan.
func (b *bench) awaitClaims(r *features.Registry, step int) {
	b.t.Helper()
	testkit.Eventually(b.t, 30*time.Second, fmt.Sprintf("definitions %d are taken", step), func() (bool, string) {
		h, err := b.store.History(context.Background())
		if err != nil {
			return false, err.Error()
		}
		present := slices.DeleteFunc(h.PlanEpochs, func(m state.PlanEpoch) bool { return m.Last != state.MaxTime })
		return !slices.ContainsFunc(present, func(m state.PlanEpoch) bool { return m.Version != r.Plan().Version }), fmt.Sprint(present)
	})
}

const logins = `
streams:
  login: {topic: logins, timestamp: at, fields: {user: string}}
features:
  logins: COUNT(lifetime, login, user)
`

// Definitions with another topic make the processor join the group for it, without leaving
// it, and without it leave it be.
func TestReloadOfOtherTopics(t *testing.T) {
	b := newBench(t)
	if err := b.broker.CreateTopic("logins", 2, nil); err != nil {
		t.Fatal(err)
	}
	both, err := definition.Parse("test.yaml", []byte(definitions+"---"+logins))
	if err != nil {
		t.Fatal(err)
	}
	login := func(n int) {
		for i := range n {
			b.write(kafka.Message{Topic: "logins", Key: []byte{byte(i % 2)}, Value: fmt.Appendf(nil, `{"at":%d,"user":"u1"}`, at), Time: time.UnixMilli(at)})
		}
	}
	login(3) // before anybody reads the topic
	b.write(payments(0, 100)...)
	b.run()
	b.expect(100)
	if since := b.since(both, "logins"); since != state.MaxTime {
		t.Errorf("complete since %d without a reader", since)
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
	testkit.Eventually(t, 30*time.Second, "logins", func() (bool, string) { return count() == "5", count() })
	if since := b.since(both, "logins"); since != state.MinTime {
		t.Errorf("a topic that was read from its beginning is complete since %d", since)
	}
	admit := b.refuseJoins()
	b.processor.Reload(b.registry)
	login(2)
	b.write(payments(300, 400)...)
	b.expect(400)
	admit()
	b.awaitAssigned(partitions)
	b.write(payments(400, 500)...)
	b.expect(500)
	b.committed(500)
	if got := count(); got != "5" {
		t.Errorf("%s logins: their topic was to be left alone", got)
	}
	b.processor.Reload(both)
	testkit.Eventually(t, 30*time.Second, "logins that came while nobody read them", func() (bool, string) { return count() == "7", count() })
	if n := left.Load(); n > 0 {
		t.Errorf("the processor left the group %d times to read other topics", n)
	}
}

// refuseJoins has the group keep its members as they are until it is told to admit them.
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

// Definitions with a topic that is not there yet keep no other one waiting.
func TestReloadOfATopicThatIsMissing(t *testing.T) {
	b := newBench(t)
	both, err := definition.Parse("test.yaml", []byte(definitions+"---"+logins))
	if err != nil {
		t.Fatal(err)
	}
	b.run()
	b.write(payments(0, 100)...)
	b.expect(100)
	b.processor.Reload(both)
	testkit.Eventually(t, 30*time.Second, "readiness tells of the topic", func() (bool, string) {
		err := b.processor.Ready(t.Context())
		part, ok := err.(interface{ Degraded() bool })
		return ok && part.Degraded() && strings.Contains(err.Error(), `the partitions at hand go on, but no others can be taken: topic "logins"`), fmt.Sprint(err)
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
	testkit.Eventually(b.t, 30*time.Second, "partitions assigned", func() (bool, string) {
		got := b.processor.Stats().Assigned
		return got == n, fmt.Sprint(got)
	})
}

// spy is a store and its writer, seen at work.
type spy struct {
	store.Store
	mu      sync.Mutex
	claimed map[string]time.Time // by version, the last claim
	applied map[string]time.Time // by version, the first batch with events
}

func (s *spy) Claim(ctx context.Context, p []state.Partition, version string, givesWayTo ...string) ([]state.Claim, error) {
	at := time.Now() // Redis takes its own moment somewhat later: before the reply
	claims, err := s.Store.Claim(ctx, p, version, givesWayTo...)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range claims {
		if c.Held == 0 {
			s.claimed[version] = at
		}
	}
	return claims, err
}

// spyingWriter notes when a plan is first applied; hold, where set, keeps it.
type spyingWriter struct {
	store.Writer
	spy  *spy
	hold func()
}

func (w spyingWriter) Apply(ctx context.Context, b *state.Batch) error {
	for i := range b.Ranges {
		_, version, _ := strings.Cut(b.Ranges[i].Partition.Topic, "@")
		w.spy.mu.Lock()
		if _, ok := w.spy.applied[version]; !ok && len(b.Updates) > 0 {
			w.spy.applied[version] = time.Now()
		}
		w.spy.mu.Unlock()
	}
	if w.hold != nil && len(b.Updates) > 0 {
		w.hold()
	}
	return w.Writer.Apply(ctx, b)
}

func (b *bench) watch(hold func()) *spy {
	s := &spy{Store: b.store, claimed: map[string]time.Time{}, applied: map[string]time.Time{}}
	b.config.Store = writing{s, func() store.Writer { return spyingWriter{b.store.NewWriter(), s, hold} }}
	return s
}

// A plan that lacks what another kept is applied only when nobody can take the
// old history for the present one any more; one that keeps more, at once.
func TestPlansThatLackSomethingWaitForTheGracePeriod(t *testing.T) {
	b := newBench(t)
	b.config.Recovery.GracePeriod = time.Hour
	b.watch(nil)
	b.config.Registry = registryOf(t)
	b.run()
	b.writeStamped(0, 50)
	b.expect(50)
	with := registryOf(t, bySecond)
	b.processor.Reload(with)
	b.writeStamped(50, 100)
	b.expect(100) // without a wait
	if err := b.stop(); err != nil {
		t.Fatal(err)
	}

	b.config.Recovery.GracePeriod = 300 * time.Millisecond
	spy := b.watch(nil)
	b.run()
	b.writeStamped(100, 200)
	b.expect(200)
	version := b.config.Registry.Plan().Version
	if waited := spy.applied[version].Sub(spy.claimed[version]); waited < b.config.Recovery.GracePeriod {
		t.Errorf("applied %v after the claim, want %v", waited, b.config.Recovery.GracePeriod)
	}
	if since := b.since(with, "by_second"); since != state.MaxTime {
		t.Errorf("what is no longer kept is complete since %d", since)
	}
}

// A processor with old definitions that hangs with a batch in its hands, loses
// its partitions and wakes up, changes nothing.
func TestProcessorThatHangsAndWakesUp(t *testing.T) {
	b := newBench(t)
	held, release := make(chan struct{}, 100), make(chan struct{})
	b.config.Recovery.GracePeriod = time.Hour
	b.config.Registry = registryOf(t)
	b.watch(func() {
		held <- struct{}{}
		<-release
	})
	b.run()
	stopFirst := b.stop
	b.writeStamped(0, 300)
	<-held

	// Another owner of the same partitions, whom the group does not know of.
	with := registryOf(t, bySecond)
	b.config.Group += "-2"
	b.config.Registry = with
	b.watch(nil)
	b.run()
	b.expectSince(with, 300)
	close(release)
	b.writeStamped(300, 2000)
	// Nothing is lost. The one that woke up may take partitions for its own
	// definitions at any time until it ends, also behind the last event.
	b.expect(2000)
	if err := stopFirst(); err != nil {
		t.Fatal(err)
	}
	b.writeStamped(2000, 4000)
	b.expectSince(with, 4000)
}

// Records that are passed over are not taken for events that are there.
func TestStartAtTheEndIsNotCompleteForEver(t *testing.T) {
	b := newBench(t)
	b.config.Recovery.Start = recovery.Latest
	b.write(payments(0, 30)...)
	before := time.Now().UnixMilli()
	b.run()
	testkit.Eventually(t, 30*time.Second, "readiness", func() (bool, string) {
		err := b.processor.Ready(context.Background())
		return err == nil, fmt.Sprint(err)
	})
	if since := b.since(b.registry, "paid"); since < before || since > time.Now().Add(6*time.Minute).UnixMilli() {
		t.Errorf("complete since %d, want about now", since)
	}
}

// A record that is dated far into the future, of whatever stream, keeps a
// feature that is added later from being complete for a day and not for ever.
func TestReloadAfterARecordFromTheFarFuture(t *testing.T) {
	b := newBench(t)
	b.config.Recovery.GracePeriod = 20 * time.Millisecond
	b.run()
	stray := payment(0)
	stray.Value, stray.Time = []byte(`{"type":"stray"}`), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	b.write(payments(0, 30)...)
	b.write(stray)
	b.expect(30)
	b.committed(31)
	with := registryOf(t, bySecond)
	b.processor.Reload(with)
	b.awaitClaims(with, 0)
	b.write(payments(30, 60)...)
	b.expect(60)
	most := time.Now().Add(state.MaxAhead + with.Streams[0].MaxFuture + 2*time.Second).UnixMilli()
	if since := b.since(with, "by_second"); since > most || since < at {
		t.Errorf("complete since %d, want no later than %d", since, most)
	}
}
