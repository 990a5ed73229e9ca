package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/value"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// servers are the kinds of Redis that the store must work on. Using two slots in one script fails
// on the cluster only.
var servers = kindsOfServers()

func kindsOfServers() map[string]func(testing.TB) redis.UniversalClient {
	kinds := map[string]func(testing.TB) redis.UniversalClient{
		"redis":   func(t testing.TB) redis.UniversalClient { return redistest.Shared(t).Client(t) },
		"cluster": func(t testing.TB) redis.UniversalClient { return redistest.SharedCluster(t).Client(t) },
	}
	// Under the race detector miniredis takes most of the time, and it covers nothing that the others do not.
	if !testkit.Race {
		kinds["miniredis"] = func(t testing.TB) redis.UniversalClient { return miniredis(t) }
	}
	return kinds
}

// ownServers are the same kinds of servers, for tests with many keys: tests of sweeps walk over all keys of the shared ones.
func ownServers() map[string]func(testing.TB) redis.UniversalClient {
	own := maps.Clone(servers)
	own["redis"] = func(t testing.TB) redis.UniversalClient { return redistest.New(t, redistest.Options{}).Client(t) }
	own["cluster"] = func(t testing.TB) redis.UniversalClient { return redistest.NewCluster(t).Client(t) }
	return own
}

// miniredis is a client of a server in this process.
func miniredis(t testing.TB) *redis.Client {
	// Its Lua is slow under the race detector, and a call that times out is repeated.
	c := redis.NewClient(&redis.Options{Addr: redistest.Embedded(t).Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

// onEach runs a test on each kind of server, with an empty namespace.
func onEach(t *testing.T, shards int, test func(t *testing.T, s *Store)) {
	for name, client := range servers {
		t.Run(name, func(t *testing.T) { test(t, newStore(t, client(t), shards)) })
	}
}

// knownSecret hashes the few users of these tests to different registers, so that estimates of their number are exact.
var knownSecret, _ = state.ParseSecret("d2VpcidzIHRlc3RzIDE2IQ==")

// newStore makes a namespace, with a known secret.
func newStore(t testing.TB, client redis.UniversalClient, shards int, options ...Option) *Store {
	s := New(client, testkit.Namespace(t), shards, options...)
	s.secret.Store(&knownSecret)
	return created(t, s)
}

// created makes the namespace of a store, with a secret of its own unless the store has one.
func created(t testing.TB, s *Store) *Store {
	if err := s.Create(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}

const day = 24 * 60 * 60 * 1000

// Series of every layout, as the plan of a registry would make them.
var (
	events   = &state.Series{ID: "count", Group: "devic", By: []string{"device"}, Measure: state.CountEvents, Tile: day, Keep: 8 * day, GroupKeep: 9 * day, KeyBytes: 500 << 10}
	amount   = &state.Series{ID: "sumsu", Group: "devic", By: []string{"device"}, Measure: state.Sum, Type: value.Decimal, Scale: 2, Tile: day, Keep: 8 * day, GroupKeep: 9 * day, KeyBytes: 500 << 10}
	weight   = &state.Series{ID: "float", Group: "devic", By: []string{"device"}, Measure: state.Sum, Type: value.Float, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	smallest = &state.Series{ID: "least", Group: "devic", By: []string{"device"}, Measure: state.Min, Type: value.Decimal, Scale: 2, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	biggest  = &state.Series{ID: "great", Group: "devic", By: []string{"device"}, Measure: state.Max, Type: value.Float, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	users    = &state.Series{ID: "users", Group: "devic", By: []string{"device"}, Measure: state.Distinct, Type: value.String, Tile: day, Keep: 8 * day, GroupKeep: 9 * day, KeyBytes: 500 << 10}
	approx   = &state.Series{ID: "hllog", Group: "devic", By: []string{"device"}, Measure: state.Approx, Type: value.String, Tile: day, Keep: 8 * day, GroupKeep: 9 * day}
	recent   = &state.Series{ID: "lasts", Group: "devic", By: []string{"device"}, Measure: state.LastTimes, Type: value.String, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day, Max: 20}
	ever     = &state.Series{ID: "everx", Group: "etern", By: []string{"device"}, Measure: state.CountEvents}
	ids      = &state.Series{ID: "idsxx", Group: "devic", By: []string{"device"}, Measure: state.RememberID, Tile: 1000, Keep: 600_000, GroupKeep: 9 * day, Max: 30}
	history  = &state.Series{ID: "logxx", Group: "devic", By: []string{"device"}, Measure: state.Record, Tile: 1, Keep: 8 * day, GroupKeep: 9 * day, Max: 40}

	allSeries = []*state.Series{events, amount, weight, smallest, biggest, users, approx, recent, ever, history, ids}
)

var (
	transactions = state.Partition{Topic: "transactions", ID: 3}
	logins       = state.Partition{Topic: "logins", ID: 0}
)

// event is what the tests write: an event of a device at an offset.
type event struct {
	offset       int64
	device, user string
	time         int64
	cents        int64
}

// fill maps events into a batch, as a plan with all the series above would.
func fill(b *state.Batch, rangeIndex int, list ...event) {
	b.Series = allSeries
	for _, e := range list {
		b.Now = max(b.Now, e.time)
		b.Update(rangeIndex, e.offset, []byte(e.device))
		tile := state.FloorDiv(e.time, day)
		b.Add(state.Mutation{Series: events, Tile: tile, Num: 1})
		b.Add(state.Mutation{Series: amount, Tile: tile, Num: e.cents})
		b.Add(state.Mutation{Series: weight, Tile: tile, Num: int64(math.Float64bits(float64(e.cents) / 4))})
		b.Add(state.Mutation{Series: smallest, Tile: tile, Num: e.cents})
		b.Add(state.Mutation{Series: biggest, Tile: tile, Num: int64(math.Float64bits(float64(e.cents) / 4))})
		b.Add(state.Mutation{Series: users, Tile: tile, Text: &state.Text{Member: []byte(e.user)}})
		b.Add(state.Mutation{Series: approx, Tile: tile, Text: &state.Text{Member: []byte(e.user)}})
		b.Add(state.Mutation{Series: recent, Tile: e.time, Num: e.time, Text: &state.Text{Member: []byte(e.user)}})
		b.Add(state.Mutation{Series: ever, Num: 1})
		b.Ranges[rangeIndex].To = e.offset + 1
	}
}

// begin makes a batch with the progress that the store has.
func begin(t testing.TB, s *Store, partitions ...state.Partition) *state.Batch {
	t.Helper()
	b := new(state.Batch)
	progress, err := s.Progress(context.Background(), partitions)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range partitions {
		b.Ranges = append(b.Ranges, state.PartitionRange{Partition: p, Progress: progress[i], To: state.Lowest(progress[i])})
	}
	return b
}

func start(t testing.TB, s *Store, partitions ...state.Partition) {
	t.Helper()
	for _, p := range partitions {
		if _, err := s.Place(context.Background(), testkit.FirstPlacement(p, s.Shards(), 0)); err != nil {
			t.Fatal(err)
		}
	}
}

func apply(t testing.TB, w *writer, b *state.Batch) {
	t.Helper()
	if err := w.Apply(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// holds reads everything of a device in a range of days.
func holds(t testing.TB, s *Store, device string, from, to int64) string {
	t.Helper()
	var reads []state.Read
	for _, series := range []*state.Series{events, amount, weight, smallest, biggest, users, approx} {
		reads = append(reads, state.Read{Series: series, Entity: device, First: from, Last: to})
	}
	reads = append(reads, state.Read{Series: recent, Entity: device, First: from * day, Last: (to+1)*day - 1},
		state.Read{Series: ever, Entity: device})
	windowStates, err := s.Read(context.Background(), reads)
	if err != nil {
		t.Fatal(err)
	}
	return describe(windowStates)
}

// expected is what holds must return after the events.
func expected(list []event, device string, from, to int64) string {
	tiles := make([]map[int64]*state.Bucket, 5)
	for i := range tiles {
		tiles[i] = map[int64]*state.Bucket{}
	}
	values := [...]func(e event, b *state.Bucket, first bool){
		func(_ event, b *state.Bucket, _ bool) { b.Value.Type = value.Int; b.Value.Num++ },
		func(e event, b *state.Bucket, _ bool) {
			b.Value.Type, b.Value.Scale = value.Decimal, 2
			b.Value.Num += e.cents
		},
		func(e event, b *state.Bucket, _ bool) {
			b.Value.Type = value.Float
			b.Value.Flt += float64(e.cents) / 4
		},
		func(e event, b *state.Bucket, first bool) {
			b.Value.Type, b.Value.Scale = value.Decimal, 2
			if first || e.cents < b.Value.Num {
				b.Value.Num = e.cents
			}
		},
		func(e event, b *state.Bucket, first bool) {
			b.Value.Type = value.Float
			if v := float64(e.cents) / 4; first || v > b.Value.Flt {
				b.Value.Flt = v
			}
		},
	}
	inWindow, lastSeen := map[string]bool{}, map[string]int64{}
	all := int64(0)
	for _, e := range list {
		if e.device != device {
			continue
		}
		all++
		lastSeen[e.user] = max(lastSeen[e.user], e.time)
		tile := state.FloorDiv(e.time, day)
		if tile < from || tile > to {
			continue
		}
		inWindow[e.user] = true
		for i, add := range values {
			b, there := tiles[i][tile]
			if !there {
				b = &state.Bucket{Tile: tile}
				tiles[i][tile] = b
			}
			add(e, b, !there)
		}
	}
	out := make([]state.WindowState, 9)
	for i := range tiles {
		for tile := from; tile <= to; tile++ {
			if b := tiles[i][tile]; b != nil {
				out[i].Buckets = append(out[i].Buckets, *b)
			}
		}
	}
	for user := range inWindow {
		out[5].Members = append(out[5].Members, user)
	}
	out[6].Count = int64(len(inWindow))
	for _, t := range lastSeen {
		if day := state.FloorDiv(t, day); day >= from && day <= to {
			out[7].Count++
		} else if day > to {
			out[7].After++
		}
	}
	if all > 0 {
		out[8].Buckets = []state.Bucket{{Value: value.Value{Type: value.Int, Num: all}}}
	}
	return describe(out)
}

func describe(list []state.WindowState) string {
	text := ""
	for _, s := range list {
		slices.Sort(s.Members)
		for _, b := range s.Buckets {
			text += fmt.Sprintf("%d=%s ", b.Tile, b.Value.AppendText(nil))
		}
		text += fmt.Sprintf("%q count=%d after=%d capped=%v\n", s.Members, s.Count, s.After, s.Capped)
	}
	return text
}

// randomEvents are events of a few devices on days 100 to 106, out of order and with duplicates.
func randomEvents(random *rand.Rand, n int) []event {
	list := make([]event, n)
	for i := range list {
		list[i] = event{
			offset: int64(i), device: fmt.Sprint("d", random.IntN(9)), user: fmt.Sprint("u", random.IntN(15)),
			time: 100*day + random.Int64N(7*day), cents: random.Int64N(100000) - 50000,
		}
		if i > 0 && random.IntN(10) == 0 {
			list[i] = list[i-1]
			list[i].offset++
		}
	}
	return list
}

func checkAll(t *testing.T, s *Store, list []event) {
	t.Helper()
	for i := range 9 {
		device := fmt.Sprint("d", i)
		for _, window := range [][2]int64{{100, 106}, {103, 103}, {101, 104}} {
			got, want := holds(t, s, device, window[0], window[1]), expected(list, device, window[0], window[1])
			if got != want {
				t.Fatalf("device %s, days %v: got\n%s\nwant\n%s", device, window, got, want)
			}
		}
	}
}

func TestLayout(t *testing.T) {
	t.Parallel()
	onEach(t, 8, func(t *testing.T, s *Store) {
		ctx := context.Background()
		if err := s.Create(ctx); err != nil {
			t.Errorf("a second Create: got error %v", err)
		}
		other := New(s.redis, s.namespace, 16)
		err := other.Create(ctx)
		want := fmt.Sprintf("namespace %q has 8 shards, and this process began with 16: start it again", s.namespace)
		if err == nil || err.Error() != want {
			t.Errorf("got error %q, want %q", err, want)
		}
		if !errors.Is(err, store.ErrLayout) {
			t.Error("the error is not a store.ErrLayout, so processes would wait")
		}
	})
}

// The number of shards that a store is made with is for a new namespace. An existing namespace keeps its number.
func TestAdopt(t *testing.T) {
	t.Parallel()
	onEach(t, 8, func(t *testing.T, s *Store) {
		ctx := context.Background()
		start(t, s, transactions)
		held, err := s.Inspect(ctx, events, "d1")
		if err != nil {
			t.Fatal(err)
		}
		other := New(s.redis, s.namespace, 3)
		if err := other.Adopt(ctx); err != nil || other.Shards() != 8 {
			t.Fatalf("the process that adopts has %d shards, error %v; want 8", other.Shards(), err)
		}
		if err := other.Create(ctx); err != nil {
			t.Errorf("an adopted layout is refused: %v", err)
		}
		found, err := other.Inspect(ctx, events, "d1")
		if err != nil || found.Key != held.Key || found.Shard != held.Shard {
			t.Errorf("the adopting process reads %s in shard %d, error %v; want %s in shard %d", found.Key, found.Shard, err, held.Key, held.Shard)
		}
		young := New(s.redis, s.namespace+"-young", 3)
		if err := young.Adopt(ctx); err != nil || young.Shards() != 3 {
			t.Errorf("a new namespace gets %d shards, error %v; want 3", young.Shards(), err)
		}
		hashed := New(s.redis, s.namespace, 3, HashEntities([]byte("secret")))
		var layout *layoutError
		if err := hashed.Adopt(ctx); !errors.As(err, &layout) {
			t.Errorf("a process that hashes entities: got error %v, want a layoutError", err)
		}
	})
}
