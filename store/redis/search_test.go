package redisstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// A process whose settings have another number of shards than the namespace finds that of the namespace, though the
// layout is lost: with a number from before a resharding, too.
func TestNumberOfShardsIsSearched(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		before := layout(r.T, r.store)
		for _, shards := range []int{2, 8} {
			if shards > 2 {
				r.to(shards)
			}
			r.write(5)
			loseLayout(r.T, r.store)
			r.now(3)
			if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != shards {
				r.Fatalf("found %d shards, error %v; want %d", r.store.Shards(), err, shards)
			}
			if err := r.store.Create(r.Context()); err != nil {
				r.Fatal(err)
			}
			if after := layout(r.T, r.store); after[keyspace.SecretField] != before[keyspace.SecretField] {
				r.Errorf("the namespace has the secret %q, want %q as before", after[keyspace.SecretField], before[keyspace.SecretField])
			}
			r.write(5)
			r.check()
		}
	})
}

// While a master that may have shards does not answer, a namespace without a layout is not taken for a new one.
func TestNumberOfShardsIsNotSearchedInPart(t *testing.T) {
	t.Parallel()
	h := newHung(t)
	start(t, h.Store, transactions)
	loseLayout(t, h.Store)
	h.cluster.Nodes[0].Pause()
	defer h.cluster.Nodes[0].Resume()
	s := New(h.redis, h.namespace, 3)
	s.masters.question, s.masters.write = h.masters.question, h.masters.write
	if err := s.Adopt(t.Context()); err == nil && s.Shards() != len(h.tags) {
		t.Errorf("found %d shards, want %d or an error", s.Shards(), len(h.tags))
	}
}

// The first shards of several numbers have the same tag: that of 128 also is that of 127. Whatever the settings have, the number
// with which the namespace began is found, and after a resharding the number of those that took over.
func TestNumberOfShardsThatShareATag(t *testing.T) {
	t.Parallel()
	s := created(t, New(miniredis(t), "payments", 128))
	if s.tags[0] != keyspace.ShardTag(s.namespace, 0, 127) {
		t.Fatal("127 and 128 shards share no tag, so nothing was tested")
	}
	start(t, s, transactions)
	r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
	for _, shards := range []int{128, 256} {
		if shards > 128 {
			r.to(shards)
		}
		r.write(2)
		loseLayout(t, r.store)
		for _, setting := range []int{3, 127, 129, 255} {
			r.now(setting)
			if err := r.store.Adopt(t.Context()); err != nil || r.store.Shards() != shards {
				t.Errorf("with the setting %d: found %d shards, error %v; want %d", setting, r.store.Shards(), err, shards)
			}
		}
		r.now(shards)
		created(t, r.store)
		r.check()
	}
}

// The number of shards is found by the first or the last shard, if the master of the other one was lost with the layout.
func TestNumberOfShardsIsSearchedAtBothEnds(t *testing.T) {
	t.Parallel()
	onEach(t, 5, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		loseLayout(t, s)
		for _, lost := range []int{0, 4} {
			key := keyspace.ProgressKey(s.tags[lost])
			record := s.redis.HGetAll(t.Context(), key).Val()
			s.redis.Del(t.Context(), key)
			other := New(s.redis, s.namespace, 3)
			if err := other.Adopt(t.Context()); err != nil || other.Shards() != 5 {
				t.Errorf("without shard %d: found %d shards, error %v; want 5", lost, other.Shards(), err)
			}
			s.redis.HSet(t.Context(), key, record)
		}
	})
}

// A namespace of another version of Weir, whose shards do not say how many they are, is not taken for a new one.
func TestShardsOfAnotherFormatAreFound(t *testing.T) {
	t.Parallel()
	s := newStore(t, miniredis(t), 5)
	start(t, s, transactions)
	loseLayout(t, s)
	for _, tag := range s.tags {
		s.redis.HSet(t.Context(), keyspace.ProgressKey(tag), keyspace.FormatField, 13)
		s.redis.HDel(t.Context(), keyspace.ProgressKey(tag), keyspace.ShardsField)
	}
	err := New(s.redis, s.namespace, 3).Adopt(t.Context())
	if misfit, ok := errors.AsType[*layoutError](err); !ok || misfit.What != keyspace.FormatField || misfit.Found != "13" {
		t.Errorf("got error %v, want that it was written in layout 13", err)
	}
}

// A process that could not ask for the layout as it started, and whose settings have another number of shards, finds the
// namespace when the layout's master is back without it: it takes it for no new one, writes no other layout, and does not
// answer that there is no state.
func TestNumberOfShardsIsSearchedWithoutAdopting(t *testing.T) {
	t.Parallel()
	onEach(t, 5, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		before := layout(t, s)
		loseLayout(t, s)
		api := NewNamespace(New(s.redis, s.namespace, 3))
		if secret, err := api.Secret(t.Context()); err != nil || secret != knownSecret || api.Shards() != 5 {
			t.Errorf("an API finds %d shards, the namespace's secret: %v, error %v; want 5", api.Shards(), secret == knownSecret, err)
		}
		processor := NewNamespace(New(s.redis, s.namespace, 3))
		if err := processor.Create(t.Context()); err != nil || processor.Shards() != 5 {
			t.Errorf("a processor finds %d shards, error %v; want 5", processor.Shards(), err)
		}
		if after := layout(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the layout is %v, want %v as before", after, before)
		}
	})
}

// pipelinedHook counts commands in pipelines.
type pipelinedHook struct{ count *atomic.Int64 }

func (pipelinedHook) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (pipelinedHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (p pipelinedHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		p.count.Add(int64(len(cmds)))
		return next(ctx, cmds)
	}
}

// A new namespace is searched once, however many questions are asked about it, and once more by a processor, before it draws a
// secret: others may have begun it.
func TestNewNamespaceIsSearchedOnce(t *testing.T) {
	t.Parallel()
	client := miniredis(t)
	var asked atomic.Int64 // commands in pipelines
	client.AddHook(pipelinedHook{&asked})
	waiting := New(client, "new", 3)
	if found, err := waiting.search(t.Context()); found != nil || err != nil {
		t.Fatalf("a new namespace has %v, error %v", found, err)
	}
	once := asked.Swap(0)
	const questions = 8
	var asking sync.WaitGroup
	for range questions {
		asking.Go(func() {
			if secret, err := waiting.Secret(t.Context()); err != nil || secret != (state.Secret{}) {
				t.Errorf("a new namespace has a secret, error %v", err)
			}
		})
	}
	asking.Wait()
	if most := once + questions*10; asked.Load() > most || most >= 2*once { // and what connections are opened with
		t.Errorf("%d questions send %d commands, want at most %d: each for the layout and its shards, and one search", questions, asked.Load(), most)
	}
	s := created(t, New(client, "new", 5))
	start(t, s, transactions)
	loseLayout(t, s)
	n := NewNamespace(waiting)
	if err := n.Create(t.Context()); err != nil || n.Shards() != 5 {
		t.Errorf("a process that had found none finds %d shards, error %v; want 5", n.Shards(), err)
	}
}

// Old shards that had not begun when others took over from them say as much of the layout as those that had.
func TestLayoutIsFoundInShardsThatNeverBegan(t *testing.T) {
	t.Parallel()
	client := miniredis(t)
	for _, setting := range []int{2, 3, 8} {
		s := newStore(t, client, 2)
		r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
		r.to(8)
		loseLayout(t, s)
		for _, creates := range []bool{false, true} {
			other := New(client, s.namespace, setting)
			err := other.Adopt(t.Context())
			if creates {
				err = errors.Join(err, other.Create(t.Context()))
			}
			if err != nil || len(other.tags) != 8 || *other.secret.Load() != *s.secret.Load() {
				t.Errorf("creates: %v, with the setting %d: error %v, %d shards", creates, setting, err, len(other.tags))
			}
		}
	}
}
