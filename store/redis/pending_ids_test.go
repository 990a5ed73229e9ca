package redisstore

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/query"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/memory"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

const rememberingDefinitions = `
streams:
  payment:
    topic: transactions
    timestamp: at
    id: id
    remember_ids: 10m
    fields: {user: string, device: string, cents: int}
  refund:
    topic: refunds
    timestamp: at
    id: id
    fields: {user: string}
features:
  device_ever: COUNT(lifetime, payment, device)
  refunds: COUNT(1d, refund, user)
  user_1d: COUNT(1d, payment, user)
  user_ever: COUNT(lifetime, payment, user)
  user_list: COUNT(1d, payment, user, tile=exact)
`

// remembering is a store for streams, one of which remembers ids.
type remembering struct {
	testing.TB
	registry *features.Registry
	mapper   *features.Mapper
	store    *Store
	writer   *writer
	memory   *memory.Store
	offset   int64
}

const paid = 1_532_496_076_032

func newRemembering(t testing.TB, s *Store) *remembering {
	registry := defined.Registry(t, rememberingDefinitions)
	start(t, s, transactions)
	return &remembering{TB: t, registry: registry, mapper: registry.NewMapper(), store: s, writer: s.newWriter(), memory: memory.NewKeyed(*s.secret.Load())}
}

// batch maps payments that are given as JSON members.
func (r *remembering) batch(topic string, members ...string) *state.Batch {
	r.Helper()
	b := begin(r, r.store, transactions)
	for _, m := range members {
		record := record.Record{
			Partition: state.Partition{Topic: topic}, Offset: r.offset, Timestamp: paid, Value: fmt.Appendf(nil, `{"at":%d,%s}`, paid, m),
		}
		r.offset++
		b.Ranges[0].To = r.offset
		if _, err := r.mapper.Map(&record, 0, b); err != nil {
			r.Fatal(err)
		}
	}
	return b
}

func (r *remembering) apply(b *state.Batch) {
	r.Helper()
	if err := r.memory.Apply(context.Background(), b); err != nil {
		r.Fatal(err)
	}
	apply(r, r.writer, b)
}

// want compares the answers with pending events, sorted by feature name. User and device have the
// same text.
func (r *remembering) want(pending *state.Batch, want string) {
	r.Helper()
	for name, s := range map[string]store.Reader{"Redis": r.store, "memory": r.memory} {
		if got := r.ask(s, pending); got != want {
			r.Errorf("%s: the features are %s, want %s", name, got, want)
		}
	}
}

func (r *remembering) ask(s store.Reader, pending *state.Batch) string {
	r.Helper()
	var reading query.Reading
	reading.Reset(paid)
	for _, f := range r.registry.Features {
		reading.Want(f, "x", paid)
	}
	if err := reading.Read(context.Background(), overlaid{s, pending}); err != nil {
		r.Fatal(err)
	}
	var values []string
	for range r.registry.Features {
		var a query.Answer
		reading.Next(&a)
		values = append(values, fmt.Sprint(a.Value.Num))
	}
	return strings.Join(values, " ")
}

// overlaid reads with pending events laid over the state.
type overlaid struct {
	store.Reader
	pending *state.Batch // nil for none
}

func (s overlaid) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, s.pending)
}

// A question with pending events writes nothing.
func TestQuestionsWriteNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t).Client(t), 4)
	r := newRemembering(t, s)
	r.apply(r.batch("transactions", `"id":"a","user":"x","device":"x"`))
	keys := func() map[string]string {
		held := map[string]string{}
		for shard := range s.tags {
			maps.Copy(held, dumpShard(t, s, shard))
		}
		return held
	}
	before := keys()
	if len(before) <= len(s.tags) { // no more than their progress
		t.Fatalf("%d keys, want more than the progress of %d shards", len(before), len(s.tags))
	}
	r.want(r.batch("transactions", `"id":"b","user":"x","device":"x"`), "2 0 2 2 2")
	if diff := cmp.Diff(before, keys()); diff != "" {
		t.Errorf("the question has changed keys (-before +after):\n%s", diff)
	}
}

// A pending event whose id was already applied is not counted twice. One whose id was not, or that has none, is
// counted.
func TestPendingThatHasArrived(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		r := newRemembering(t, s)
		const both = `"user":"x","device":"x"`
		first := r.batch("transactions", `"id":"a",`+both)
		r.want(nil, "0 0 0 0 0")
		r.want(first, "1 0 1 1 1")
		r.apply(first)
		r.want(nil, "1 0 1 1 1")
		r.want(r.batch("transactions", `"id":"a",`+both), "1 0 1 1 1")
		r.want(r.batch("transactions", `"id":"b",`+both), "2 0 2 2 2")
		r.want(r.batch("transactions", both), "2 0 2 2 2")
		r.want(r.batch("transactions", `"id":"a",`+both, `"id":"b",`+both, `"id":"b",`+both), "2 0 2 2 2")
		r.want(r.batch("transactions", `"id":"a","user":"x","device":"y"`), "1 0 1 1 1")
		// The stream that does not remember ids counts all events, and the ids of one stream are
		// not those of another.
		r.want(r.batch("refunds", `"id":"a","user":"x"`), "1 1 1 1 1")
		// The user remembers an event that the device does not.
		r.apply(r.batch("transactions", `"id":"c","user":"x"`))
		r.want(r.batch("transactions", `"id":"c",`+both), "2 0 2 2 2")
	})
}

// A key of another type is damaged, also with pending events.
func TestPendingOnForeignKey(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t).Client(t), 1)
	r := newRemembering(t, s)
	pending := r.batch("transactions", `"id":"a","user":"x"`)
	f, _ := r.registry.Feature("user_ever")
	key := string(s.appendKey(nil, f.Series[0], "x"))
	if err := s.redis.HSet(context.Background(), key, "a", 1).Err(); err != nil {
		t.Fatal(err)
	}
	windowStates, err := s.ReadOverlay(context.Background(), []state.Read{{Series: f.Series[0], Entity: "x"}}, pending)
	if want := (keyspace.NewError(key, keyspace.ErrForeign)).Error(); err != nil || windowStates[0].Err == nil || windowStates[0].Err.Error() != want {
		t.Errorf("got %+v, error %v; want the error %s", windowStates, err, want)
	}
}

// An event that is applied during a question about it is counted once.
func TestPendingThatArrivesMeanwhile(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		r := newRemembering(t, s)
		for n := range 60 {
			event := fmt.Sprintf(`"id":%d,"user":"x","device":"x"`, n)
			pending, b := r.batch("transactions", event), r.batch("transactions", event)
			written := make(chan error, 1)
			go func() { written <- r.writer.Apply(context.Background(), b) }()
			want := fmt.Sprintf("%d 0 %[1]d %[1]d %[1]d", n+1)
			for arrived := false; !arrived; {
				select {
				case err := <-written:
					if err != nil {
						t.Fatal(err)
					}
					arrived = true
				default:
				}
				if got := r.ask(s, pending); got != want {
					t.Fatalf("while event %d is applied, the features are %s, want %s", n, got, want)
				}
			}
		}
	})
}

// IDs are forgotten after their time, and above their maximum number the oldest first.
func TestIDsAreForgotten(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t).Client(t), 1)
	start(t, s, transactions)
	w := s.newWriter()
	counted := func(now int64) (n int64) {
		read := state.Read{Series: ids, Entity: "d1", First: 0, Last: ids.TileOf(now)}
		windowStates, err := s.Read(context.Background(), []state.Read{read})
		if err != nil {
			t.Fatal(err)
		}
		return windowStates[0].Count
	}
	offset := int64(0)
	met := func(now int64, events int64) {
		b := begin(t, s, transactions)
		b.Now, b.Series = now, allSeries
		for range events {
			b.Update(0, offset, []byte("d1"))
			b.Add(state.Mutation{Series: ids, Tile: ids.TileOf(now), Text: &state.Text{Member: fmt.Append(nil, offset)}})
			offset++
			b.Ranges[0].To = offset
		}
		apply(t, w, b)
	}
	met(100*day, 10)
	met(100*day+300_000, 10)
	met(100*day+300_000, 0)
	if got := counted(100*day + 300_000); got != 20 {
		t.Errorf("%d IDs are remembered, want 20", got)
	}
	for n := range int64(40) {
		met(100*day+900_000+n*1000, 1) // so many that the key is compacted
	}
	if got := counted(101 * day); got != int64(ids.Max) {
		t.Errorf("%d IDs are remembered, want %d", got, ids.Max)
	}
	pending := new(state.Batch)
	pending.Update(0, 0, []byte("d1"))
	pending.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	pending.Add(state.Mutation{Series: ids, Tile: ids.TileOf(101 * day), Text: &state.Text{Member: fmt.Append(nil, offset-1)}})
	pending.Update(0, 1, []byte("d1"))
	pending.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	pending.Add(state.Mutation{Series: ids, Tile: ids.TileOf(101 * day), Text: &state.Text{Member: []byte("0")}}) // forgotten
	windowStates, err := s.ReadOverlay(context.Background(), []state.Read{{Series: events, Entity: "d1", First: 100, Last: 100}}, pending)
	if err != nil {
		t.Fatal(err)
	}
	want := []state.Bucket{{Tile: 100, Value: value.Value{Type: value.Int, Num: 1}}}
	if diff := cmp.Diff(want, windowStates[0].Buckets); diff != "" {
		t.Errorf("the counts with two pending events differ (-want +got):\n%s", diff)
	}
}

// A question with pending events is still one round trip.
func TestPendingIsOneRoundTrip(t *testing.T) {
	t.Parallel()
	s := newStore(t, redistest.Shared(t).Client(t), 1)
	r := newRemembering(t, s)
	r.apply(r.batch("transactions", `"id":"a","user":"x","device":"x"`))
	pending := r.batch("transactions", `"id":"b","user":"x","device":"x"`)
	trips := new(tripCounter)
	s.redis.AddHook(trips)
	r.want(pending, "2 0 2 2 2")
	if trips.pipelines != 1 || trips.commands != 0 {
		t.Errorf("%d pipelines and %d commands, want 1 and none", trips.pipelines, trips.commands)
	}
}

// tripCounter counts round trips.
type tripCounter struct{ pipelines, commands int }

func (c *tripCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *tripCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error { c.commands++; return next(ctx, cmd) }
}

func (c *tripCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error { c.pipelines++; return next(ctx, cmds) }
}

func dumpShard(t *testing.T, s *Store, shard int) map[string]string {
	ctx := context.Background()
	dump := map[string]string{}
	for _, key := range shardKeys(t, s, shard) {
		dump[key] = s.redis.Dump(ctx, key).Val()
	}
	return dump
}

func shardKeys(t *testing.T, s *Store, shard int) []string {
	keys, err := s.redis.Keys(context.Background(), s.tags[shard]+"*").Result()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}
