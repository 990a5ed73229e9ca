package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// replicated is a store that reads from replicas, and writes to their master.
type replicated struct {
	*Store
	writer  *writer
	written int64
}

// newReplicated makes a store whose master has replicas at addresses.
func newReplicated(t *testing.T, master redis.UniversalClient, replicas *redis.ClusterClient, within time.Duration) *replicated {
	t.Helper()
	t.Cleanup(func() { _ = replicas.Close() })
	s := New(master, testkit.Namespace(t), 8, ReadFromReplicas(replicas, within, slog.New(slog.NewTextHandler(t.Output(), nil))))
	if err := s.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		s.watchReplicas(ctx)
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	start(t, s, transactions)
	return &replicated{Store: s, writer: s.newWriter()}
}

// oneMaster is the client of a master and its replicas, as for redis.mode single.
func oneMaster(addresses ...string) *redis.ClusterClient {
	slots := redis.ClusterSlot{End: 16383}
	for _, a := range addresses {
		slots.Nodes = append(slots.Nodes, redis.ClusterNode{Addr: a})
	}
	return redis.NewClusterClient(&redis.ClusterOptions{
		ReadOnly: true, DialerRetries: 1, ReadTimeout: time.Minute,
		ClusterSlots: func(context.Context) ([]redis.ClusterSlot, error) { return []redis.ClusterSlot{slots}, nil },
	})
}

// write applies one more event of each device.
func (r *replicated) write(t *testing.T, devices int) {
	t.Helper()
	b := begin(t, r.Store, transactions)
	for d := range devices {
		fill(b, 0, event{r.written, fmt.Sprint("d", d), "u1", 1000, 5})
		r.written++
	}
	apply(t, r.writer, b)
}

// counts reads from replicas how many events each device has.
func (r *replicated) counts(t *testing.T, devices int) ([]int64, state.Freshness) {
	t.Helper()
	var reads []state.Read
	for d := range devices {
		reads = append(reads, state.Read{Series: ever, Entity: fmt.Sprint("d", d)})
	}
	windowStates, f, err := r.ReadReplica(context.Background(), reads, nil)
	if err != nil {
		t.Fatal(err)
	}
	counts := make([]int64, devices)
	for d := range counts {
		for _, b := range windowStates[d].Buckets {
			counts[d] += b.Value.Num
		}
	}
	return counts, f
}

// await reads until the answer is as wanted.
func (r *replicated) await(t *testing.T, what string, want func(count int64, f state.Freshness) bool) {
	t.Helper()
	testkit.Eventually(t, time.Minute, what, func() (bool, string) {
		counts, f := r.counts(t, 1)
		return want(counts[0], f), fmt.Sprintf("%d events, %+v", counts[0], f)
	})
}

// A replica answers and states how old its state may be. Everything that it lacks was written within that time.
func TestReplicaAnswersWithItsStaleness(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, master.Addr())
	replica := redistest.NewReplica(t, link.Addr())
	const within = 4 * time.Second
	r := newReplicated(t, master.Client(t), oneMaster(master.Addr(), replica.Addr()), within)
	r.write(t, 1)
	r.await(t, "an answer from the replica that has the event", func(n int64, f state.Freshness) bool {
		return n == 1 && f.Replica && f.Staleness > 0 && f.Staleness < time.Second
	})

	link.Cut()
	cut := time.Now()
	r.write(t, 1)
	for lacks := false; ; {
		began := time.Now()
		counts, f := r.counts(t, 1)
		if !f.Replica {
			if counts[0] != 2 || !lacks || time.Since(cut) < within-2*time.Second {
				t.Fatalf("%v after the cut the master answers %v, want 2, after answers of the replica for about %v", time.Since(cut), counts, within)
			}
			break
		}
		lacks = lacks || counts[0] == 1
		if counts[0] != 1 || f.Staleness > within || began.Sub(cut) > f.Staleness+time.Millisecond {
			t.Fatalf("%v after the cut the replica answers %v with a staleness of %v; want 1, and a staleness from the cut up to %v", time.Since(cut), counts, f.Staleness, within)
		}
	}

	link.Heal()
	r.await(t, "an answer from the replica that has both", func(n int64, f state.Freshness) bool {
		return n == 2 && f.Replica && f.Staleness < time.Second
	})
}

// A replica whose clock is ahead hides keys that its master still has: the master answers then.
func TestReplicaWhoseClockIsAhead(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	replica := redistest.NewReplicaWith(t, master.Addr(), redistest.Options{OwnClock: true})
	r := newReplicated(t, master.Client(t), oneMaster(master.Addr(), replica.Addr()), 10*time.Second)
	r.write(t, 1)
	r.await(t, "an answer from the replica", func(n int64, f state.Freshness) bool { return n == 1 && f.Replica })
	replica.SetClock(time.Hour)
	r.await(t, "an answer from the master", func(n int64, f state.Freshness) bool { return n == 1 && !f.Replica })
	if found, err := r.CheckReplicas(t.Context()); err != nil || len(found) != 1 || found[0].Err == nil ||
		!strings.HasSuffix(found[0].Err.Error(), " ahead of its master's, and keys expire by it") {
		t.Errorf("found %+v, error %v", found, err)
	}
	replica.SetClock(0)
	r.await(t, "an answer from the replica again", func(n int64, f state.Freshness) bool { return n == 1 && f.Replica })
}

// If a replica dies, another replica answers, or else the master.
func TestMasterAnswersForDeadReplicas(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	first, second := redistest.NewReplica(t, master.Addr()), redistest.NewReplica(t, master.Addr())
	r := newReplicated(t, master.Client(t), oneMaster(master.Addr(), first.Addr(), second.Addr()), time.Minute)
	r.write(t, 1)
	fromReplica := func(n int64, f state.Freshness) bool { return n == 1 && f.Replica }
	r.await(t, "an answer from a replica", fromReplica)
	first.Kill()
	for range 50 {
		if counts, _ := r.counts(t, 1); counts[0] != 1 {
			t.Fatalf("with one replica left: got %v, want 1", counts)
		}
	}
	r.await(t, "an answer from the other replica", fromReplica)
	second.Kill()
	for range 50 {
		if counts, f := r.counts(t, 1); counts[0] != 1 || f != (state.Freshness{}) {
			t.Fatalf("without replicas: got %v, %+v; want 1 from the master", counts, f)
		}
	}
}

// A replica that was restarted is empty until it has synchronised, and must not answer meanwhile.
func TestEmptyReplicaDoesNotAnswer(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, master.Addr())
	replica := redistest.NewReplica(t, link.Addr())
	r := newReplicated(t, master.Client(t), oneMaster(master.Addr(), replica.Addr()), time.Minute)
	r.write(t, 1)
	r.await(t, "an answer from the replica", func(n int64, f state.Freshness) bool { return n == 1 && f.Replica })
	link.Cut()
	replica.Kill()
	replica.Start() // as a master without data: it has no configuration to replicate
	for range 20 {
		if counts, f := r.counts(t, 1); counts[0] != 1 || f.Replica {
			t.Fatalf("after a start without data: got %v, %+v; want 1 from the master", counts, f)
		}
	}
	host, port, _ := strings.Cut(link.Addr(), ":")
	if err := replica.Client(t).ReplicaOf(context.Background(), host, port).Err(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if counts, f := r.counts(t, 1); counts[0] != 1 || f.Replica {
			t.Fatalf("before it has synchronised: got %v, %+v; want 1 from the master", counts, f)
		}
	}
	link.Heal()
	r.await(t, "an answer from the replica that has synchronised", func(n int64, f state.Freshness) bool { return n == 1 && f.Replica })
}

// In a cluster each master has replicas of its own, or none.
func TestReplicasOfACluster(t *testing.T) {
	t.Parallel()
	const devices = 40 // in the shards of all masters
	c := redistest.NewCluster(t)
	c.AddReplica(t, 0)
	c.AddReplica(t, 1)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ReadOnly: true})
	r := newReplicated(t, c.Client(t), client, time.Minute)
	r.write(t, devices)
	want := make([]int64, devices)
	for d := range want {
		want[d] = 1
	}
	testkit.Eventually(t, time.Minute, "all events from replicas", func() (bool, string) {
		counts, f := r.counts(t, devices)
		return f.Replica && cmp.Equal(want, counts), fmt.Sprintf("%v, %+v", counts, f)
	})
}

// The freshness of a replica comes from offsets of its own replication only.
func TestFreshness(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return began.Add(time.Duration(seconds) * time.Second) }
	r := &replicas{within: 10 * time.Second, sights: map[string][]sight{}}
	for i, offset := range []int64{100, 200, 200, 300} {
		r.note(standing{id: "a", offset: offset, master: true}, at(i), false)
	}
	r.note(standing{id: "b", offset: 50, master: true}, at(4), false)
	for i, leaves := range []bool{true, false} {
		r.note(standing{id: "d", offset: 70, master: true}, at(4*i), leaves)
	}
	r.note(standing{id: "e", offset: 70, master: true, ahead: 3 * time.Minute}, at(0), false)
	for _, test := range []struct {
		name string
		standing
		now       int
		staleness time.Duration // negative from the master
		err       string
	}{
		{"has all", standing{"a", 300, false, 0}, 4, time.Second, ""},
		{"has more than was seen", standing{"a", 999, false, 0}, 4, time.Second, ""},
		{"has all but the last", standing{"a", 299, false, 0}, 4, 2 * time.Second, ""},
		{"has the first", standing{"a", 199, false, 0}, 4, 4 * time.Second, ""},
		{"has less than was ever seen", standing{"a", 99, false, 0}, 4, 0, "it is staler than 10s"},
		{"is the master", standing{"a", 300, true, 0}, 4, -1, ""},
		{"belongs to a master that was replaced", standing{"a", 300, false, 0}, 13, 10 * time.Second, ""},
		{"belonged to it for too long", standing{"a", 300, false, 0}, 14, 0, "no master of its replication was seen for 10s"},
		{"was master for too long", standing{"a", 300, true, 0}, 14, 0, "no master of its replication was seen for 10s"},
		{"a slot leaves its master, or did lately", standing{"d", 70, false, 0}, 4, 0, "the keys of a slot are moving from its master to another one"},
		{"is the master that a slot leaves", standing{"d", 70, true, 0}, 4, -1, ""},
		{"has a clock that is a little ahead", standing{"e", 70, false, 3*time.Minute + maxAhead}, 4, 4 * time.Second, ""},
		{"has a clock that is ahead", standing{"e", 70, false, 3*time.Minute + 31*time.Second}, 4, 0, "its clock is 31s ahead of its master's, and keys expire by it"},
		{"has a clock that is behind", standing{"e", 70, false, -time.Hour}, 4, 4 * time.Second, ""},
		{"is of another replication", standing{"c", 300, false, 0}, 4, 0, "no master of its replication was seen for 10s"},
		{"is a master nobody knows", standing{"c", 300, true, 0}, 4, 0, "no master of its replication was seen for 10s"},
	} {
		r.now = func() time.Time { return at(test.now) }
		f, err := r.freshness(test.standing)
		want := state.Freshness{Replica: true, Staleness: test.staleness}
		if test.staleness < 0 || test.err != "" {
			want = state.Freshness{}
		}
		if f != want || fmt.Sprint(err) != test.err && (err != nil || test.err != "") {
			t.Errorf("%s: got %+v, error %v; want %+v, error %q", test.name, f, err, want, test.err)
		}
	}
	r.note(standing{id: "b", offset: 60, master: true}, at(13), false)
	if n := len(r.sights["a"]); n != 1 {
		t.Errorf("%d sights of the replaced master are kept, want the last one", n)
	}
}

// A replica of a cluster that is not connected lacks what is written, although its master does not name it.
func TestDisconnectedReplicaIsBehind(t *testing.T) {
	t.Parallel()
	cluster := redistest.NewCluster(t)
	replica := cluster.AddReplica(t, 1)
	s := newStore(t, cluster.Client(t), 6)
	behind := func() (behind, replicas int) {
		t.Helper()
		found, err := s.AwaitReplicas(t.Context(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range found {
			behind, replicas = behind+c.Behind, replicas+c.Replicas
		}
		return behind, replicas
	}
	if b, n := behind(); b != 0 || n != 1 {
		t.Errorf("%d of %d replicas are behind, want 0 of 1", b, n)
	}
	replica.Kill()
	testkit.Eventually(t, time.Minute, "the replica is behind", func() (bool, string) {
		b, n := behind()
		return b == 1 && n == 1, fmt.Sprintf("%d of %d", b, n)
	})
}
