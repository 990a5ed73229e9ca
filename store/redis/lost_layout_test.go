package redisstore

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/store/redis/reshard"
)

// loseLayout deletes the layout of a namespace, as a failover to a replica that does not have it yet does.
func loseLayout(t *testing.T, s *Store) {
	t.Helper()
	if s.redis.Del(t.Context(), keyspace.LayoutKey(s.namespace)).Val() != 1 {
		t.Fatal("the namespace has no layout to lose")
	}
}

// layout returns the fields of the layout as they are in Redis.
func layout(t *testing.T, s *Store) map[string]string {
	t.Helper()
	return s.redis.HGetAll(t.Context(), keyspace.LayoutKey(s.namespace)).Val()
}

// lasting returns a layout without the time of the last switch.
func lasting(layout map[string]string) map[string]string {
	delete(layout, keyspace.SwitchedField)
	return layout
}

// What was seen is still seen, and an ID that was applied is still known, once the layout is lost and every process that
// knew the secret has ended: the API reads the secret from the shards, and the next processor writes the layout again.
func TestSecretOutlivesItsLayout(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		apply(t, s.newWriter(), meeting(t, s, "u1", "e1"))
		before := layout(t, s)
		loseLayout(t, s)
		check := func(process string, s *Store) {
			t.Helper()
			if met, _ := seen(t, s, nil, "u1", "u2"); !met[0] || met[1] {
				t.Errorf("%s: the user is seen: %v, another one: %v; want true and false", process, met[0], met[1])
			}
			if _, n := seen(t, s, meeting(t, s, "u1", "e1")); n != 1 {
				t.Errorf("%s: with a pending event that was applied there are %d events, want 1", process, n)
			}
		}
		check("an API", New(s.redis, s.namespace, 4))
		if after := layout(t, s); len(after) > 0 {
			t.Errorf("an API has written the layout %v", after)
		}
		processor := New(s.redis, s.namespace, 4)
		if err := processor.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("a processor", processor)
		if after := layout(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the layout is %v, want %v as before", after, before)
		}
	})
}

// Two processes draw a secret each, because the layout was lost in between and no shard had begun. The shards that the
// first one begins record the secret of the layout, which it uses from then on.
func TestShardsBeginWithTheSecretOfTheLayout(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, first *Store) {
		loseLayout(t, first)
		second := New(first.redis, first.namespace, 4)
		if err := second.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		if *first.secret.Load() == *second.secret.Load() {
			t.Fatal("both processes have the same secret, so nothing was tested")
		}
		start(t, first, transactions)
		apply(t, first.newWriter(), meeting(t, first, "u1", "e1"))
		if met, _ := seen(t, second, nil, "u1"); !met[0] {
			t.Error("the other process does not see what one applied")
		}
	})
}

// A process that has the secret writes it into a lost layout before its shards begin, so that no other is drawn.
func TestShardsBeginOnlyWithALayout(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		before := layout(t, s)
		loseLayout(t, s)
		start(t, s, transactions)
		if after := layout(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("the layout is %v, want %v as before", after, before)
		}
	})
}

// Shards with different secrets are copies from different times, of which no process can read all.
func TestShardsWithDifferentSecrets(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		want := fmt.Sprintf("namespace %q has more than one secret to hash values with, so its state cannot be read: use another namespace", s.namespace)
		s.redis.HSet(t.Context(), keyspace.ProgressKey(s.tags[2]), keyspace.SecretField, state.NewSecret().Text())
		if err := New(s.redis, s.namespace, 4).Create(t.Context()); fmt.Sprint(err) != want {
			t.Errorf("with a layout:\ngot  %v\nwant %s", err, want)
		}
		loseLayout(t, s)
		if err := New(s.redis, s.namespace, 4).Create(t.Context()); fmt.Sprint(err) != want {
			t.Errorf("without a layout:\ngot  %v\nwant %s", err, want)
		}
	})
}

// Keys that were hashed are not read without hashing, whether or not the layout was lost.
func TestHashingOutlivesItsLayout(t *testing.T) {
	t.Parallel()
	onEach(t, 4, func(t *testing.T, plain *Store) {
		s := newStore(t, plain.redis, 4, HashEntities(secret))
		start(t, s, transactions)
		loseLayout(t, s)
		for name, options := range map[string][]Option{"without hashing": nil, "with another secret": {HashEntities(otherSecret)}} {
			err := New(s.redis, s.namespace, 4, options...).Create(t.Context())
			if misfit, ok := errors.AsType[*layoutError](err); !ok || misfit.What != keyspace.HashingField {
				t.Errorf("%s: got error %v, want that the namespace was made with another %s", name, err, keyspace.HashingField)
			}
		}
		if err := New(s.redis, s.namespace, 4, HashEntities(secret)).Create(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The number of shards is found again after several reshardings, though the settings still have the first one.
func TestNumberOfShardsOutlivesItsLayout(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		for _, shards := range []int{4, 8} {
			r.to(shards)
			if err := r.resharder().DeleteOld(r.Context()); err != nil {
				r.Fatal(err)
			}
			r.write(5)
		}
		before := layout(r.T, r.store)
		before[keyspace.OldShardsField] = "4" // their keys may be there
		loseLayout(r.T, r.store)
		r.now(2)
		if _, err := r.store.Place(r.Context(), testkit.FirstPlacement(transactions, 2, 0)); !frozen(err) {
			r.Errorf("a process with the first number of shards begins them again: error %v", err)
		}
		if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != 8 {
			r.Fatalf("found %d shards, error %v; want 8", r.store.Shards(), err)
		}
		if err := r.store.Create(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.write(5)
		r.check()
		if after := lasting(layout(r.T, r.store)); fmt.Sprint(after) != fmt.Sprint(before) {
			r.Errorf("the layout is %v, want %v", after, before)
		}
		n := NewNamespace(New(r.store.redis, r.store.namespace, 2, r.options...))
		loseLayout(r.T, r.store)
		if err := n.CheckLayout(r.Context()); err != nil || n.Shards() != 8 {
			r.Errorf("a process that runs found %d shards, error %v; want 8", n.Shards(), err)
		}
	})
}

// The layout comes back as it was before two reshardings, whose old keys were deleted. Processes that run and that start
// continue with the last number of shards, and a processor that starts corrects the layout.
func TestLayoutFromBeforeReshardings(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		ancient := layout(r.T, r.store)
		ancient[keyspace.ReshardingField], ancient[keyspace.ResharderField] = "4", "token"
		for _, shards := range []int{4, 8} {
			r.to(shards)
			if err := r.resharder().DeleteOld(r.Context()); err != nil {
				r.Fatal(err)
			}
		}
		r.write(5)
		want := layout(r.T, r.store)
		want[keyspace.OldShardsField] = "4" // their keys may be there
		loseLayout(r.T, r.store)
		r.store.redis.HSet(r.Context(), keyspace.LayoutKey(r.store.namespace), ancient)
		if err := r.store.CheckLayout(r.Context()); err != nil {
			r.Errorf("a process that runs: %v", err)
		}
		refusal := fmt.Sprintf("namespace %q has 4 shards, but its layout says 2, because its server has gone back in time: "+
			"start a processor, which corrects it", r.store.namespace)
		for name, err := range map[string]error{
			"spreading": r.resharder().Spread(r.Context(), 4), "cancelling": r.resharder().Cancel(r.Context()),
			"deleting": r.resharder().DeleteOld(r.Context()),
		} {
			if fmt.Sprint(err) != refusal {
				r.Errorf("%s:\ngot  %v\nwant %s", name, err, refusal)
			}
		}
		r.now(2)
		if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != 8 {
			r.Fatalf("a process that starts found %d shards, error %v; want 8", r.store.Shards(), err)
		}
		if err := r.store.Create(r.Context()); err != nil {
			r.Fatal(err)
		}
		if after := lasting(layout(r.T, r.store)); fmt.Sprint(after) != fmt.Sprint(want) {
			r.Errorf("the layout is %v, want %v", after, want)
		}
		r.write(5)
		r.check()
	})
}

// The layout is lost, or comes back as it was before a resharding whose old keys are still there. All processes continue
// with the new shards, a processor that starts corrects the layout, and then the old keys can be deleted.
func TestLayoutFromBeforeAResharding(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		before := layout(r.T, r.store)
		before[keyspace.ReshardingField], before[keyspace.ResharderField] = "8", "token"
		r.to(8)
		after := lasting(layout(r.T, r.store))
		for name, returns := range map[string]bool{"lost": false, "from before": true} {
			r.write(5)
			loseLayout(r.T, r.store)
			if returns {
				r.store.redis.HSet(r.Context(), keyspace.LayoutKey(r.store.namespace), before)
			}
			if err := r.store.CheckLayout(r.Context()); err != nil || r.store.resharding.Load() > 0 {
				r.Errorf("%s: a process that runs: error %v, resharding %v", name, err, r.store.resharding.Load())
			}
			if err := r.resharder().Cancel(r.Context()); err == nil {
				r.Errorf("%s: resharding was cancelled after the switch", name)
			}
			r.now(2)
			if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != 8 {
				r.Fatalf("%s: found %d shards, error %v; want 8", name, r.store.Shards(), err)
			}
			if err := r.store.Create(r.Context()); err != nil {
				r.Fatal(err)
			}
			if found := lasting(layout(r.T, r.store)); fmt.Sprint(found) != fmt.Sprint(after) {
				r.Errorf("%s: the layout is %v, want %v as before", name, found, after)
			}
		}
		if err := r.resharder().Spread(r.Context(), 8); err != nil {
			r.Error(err)
		}
		if err := r.resharder().DeleteOld(r.Context()); err != nil {
			r.Error(err)
		}
		if left := r.keys(2); len(left) > 2 { // their progress, which says what took over
			r.Errorf("the old shards still have the keys %q", left)
		}
		r.write(5)
		r.check()
	})
}

// A reshard that is killed between the switch and its last step, so that the old shards do not say what took over, and
// then loses the switch: nothing is applied to the old shards, and the same command reshards again, without what was
// applied since: the log has that.
func TestSwitchIsLostBeforeOldShardsSayWhatTookOver(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		before := layout(r.T, r.store)
		old := r.store.tags
		r.to(8)
		for _, tag := range old {
			r.store.redis.HSet(r.Context(), keyspace.ProgressKey(tag), keyspace.ShardsField, 2)
		}
		offset, want := r.offset, maps.Clone(r.want)
		r.write(5)
		loseLayout(r.T, r.store)
		r.store.redis.HSet(r.Context(), keyspace.LayoutKey(r.store.namespace), before)
		r.now(2)
		if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != 2 {
			r.Fatalf("found %d shards, error %v; want 2", r.store.Shards(), err)
		}
		if _, err := r.store.Claim(r.Context(), []state.Partition{transactions}, state.Claimant{Version: ""}); !frozen(err) {
			r.Errorf("a claim of the old shards: error %v, want that they are frozen", err)
		}
		r.to(8)
		r.offset, r.want = offset, want
		r.write(5)
		r.check()
	})
}

// While a master that may have the secret does not answer, none is drawn. Any shard that answers is enough.
func TestNoSecretIsDrawnWhileShardsAreUnknown(t *testing.T) {
	t.Parallel()
	h := newHung(t)
	masterOf := func(key string) string {
		m, err := h.masters.of(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return m.address
	}
	hanging := h.cluster.Nodes[0] // any that does not have the layout
	if hanging.Addr() == masterOf(keyspace.LayoutKey(h.namespace)) {
		hanging = h.cluster.Nodes[1]
	}
	start(t, h.Store, transactions)
	kept := *h.secret.Load()
	loseLayout(t, h.Store)
	hanging.Pause()
	defer hanging.Resume()
	if s := h.again(); s.Create(t.Context()) != nil || *s.secret.Load() != kept {
		t.Error("the secret of the shards that answer was not found")
	}
	loseLayout(t, h.Store)
	for _, tag := range h.tags {
		if masterOf(tag) != hanging.Addr() {
			h.redis.Del(t.Context(), keyspace.ProgressKey(tag))
		}
	}
	if err := h.again().Create(t.Context()); !errors.Is(err, state.ErrUnavailable) {
		t.Errorf("got error %v, want that a master does not answer", err)
	}
	if found := layout(t, h.Store); len(found) > 0 {
		t.Errorf("the layout is %v, want none", found)
	}
}

// again returns the store of a process that has just started.
func (h *hung) again() *Store {
	s := New(h.redis, h.namespace, len(h.tags))
	s.masters.question, s.masters.write = h.masters.question, h.masters.write
	return s
}

// The master of the layout also has one of the old shards, and both come back as they were before a resharding whose old
// keys were deleted. The other old shards still say what took over.
func TestLayoutAndAnOldShardFromBeforeAResharding(t *testing.T) {
	t.Parallel()
	onResharded(t, func(r *resharded) {
		before := layout(r.T, r.store)
		first := keyspace.ProgressKey(r.store.tags[0])
		progress := r.store.redis.HGetAll(r.Context(), first).Val()
		r.to(8)
		if err := r.resharder().DeleteOld(r.Context()); err != nil {
			r.Fatal(err)
		}
		r.write(5)
		loseLayout(r.T, r.store)
		r.store.redis.Del(r.Context(), first)
		r.store.redis.HSet(r.Context(), keyspace.LayoutKey(r.store.namespace), before)
		r.store.redis.HSet(r.Context(), first, progress)
		if err := r.resharder().Spread(r.Context(), 8); err == nil || !strings.Contains(err.Error(), "has 8 shards, but its layout says 2") {
			r.Errorf("resharding the old shards: error %v, want a refusal", err)
		}
		if err := r.store.CheckLayout(r.Context()); err != nil {
			r.Errorf("a process that runs: %v", err)
		}
		r.now(2)
		if err := r.store.Adopt(r.Context()); err != nil || r.store.Shards() != 8 {
			r.Fatalf("a process that starts found %d shards, error %v; want 8", r.store.Shards(), err)
		}
		r.write(5)
		r.check()
	})
}

// The layout is lost, or comes back from before the switch, while old keys are about to be deleted: they stay.
func TestLayoutIsLostAsOldKeysAreDeleted(t *testing.T) {
	t.Parallel()
	for name, returns := range map[string]bool{"lost": false, "from before": true} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, miniredis(t), 2)
			start(t, s, transactions)
			r := &resharded{T: t, store: s, random: rand.New(rand.NewPCG(3, 4)), want: map[string]int64{}}
			r.write(20)
			before := layout(t, s)
			r.to(8)
			keys := len(r.keys(2))
			s.redis.AddHook(&beforeCall{command: "time", do: func() {
				loseLayout(t, s)
				if returns {
					s.redis.HSet(t.Context(), keyspace.LayoutKey(s.namespace), before)
				}
			}})
			want := fmt.Sprintf("the layout of namespace %q has changed meanwhile, so nothing was deleted: run this again", s.namespace)
			if err := r.resharder().DeleteOld(t.Context()); fmt.Sprint(err) != want {
				t.Errorf("got error %v, want %s", err, want)
			}
			if left := len(r.keys(2)); left != keys {
				t.Errorf("of %d old keys %d are left", keys, left)
			}
			r.now(2)
			if err := errors.Join(r.store.Adopt(t.Context()), r.store.Create(t.Context())); err != nil {
				t.Fatal(err)
			}
			r.write(5)
			r.check()
		})
	}
}

// One call writes the whole layout: if there were several, a failover between them could lose the secret, and keep the rest.
func TestLayoutIsWrittenInOneCall(t *testing.T) {
	t.Parallel()
	order := &commandOrder{}
	client := redistest.Shared(t).Client(t)
	client.AddHook(order)
	s := created(t, New(client, testkit.Namespace(t), 4))
	if calls := slices.DeleteFunc(order.names, func(name string) bool {
		return name != "eval" && !strings.HasPrefix(name, "h") || name == "hello" || name == "hgetall" || name == "hmget"
	}); !slices.Equal(calls, []string{"eval"}) {
		t.Errorf("it is written by %v, want one call", calls)
	}
	if fields := layout(t, s); len(fields) != len(keyspace.LayoutFields) {
		t.Errorf("the layout has %v, want %v", fields, keyspace.LayoutFields)
	}
}

// A number of shards that cannot be, which somebody else has written, is refused, and no process ends by it.
func TestImpossibleNumberOfShards(t *testing.T) {
	t.Parallel()
	for _, shards := range []string{"0", "-1", "16385", "99999999999999999999", "four"} {
		t.Run(shards, func(t *testing.T) {
			t.Parallel()
			onEach(t, 4, func(t *testing.T, s *Store) {
				start(t, s, transactions)
				apply(t, s.newWriter(), meeting(t, s, "u1", "e1"))
				key := keyspace.LayoutKey(s.namespace)
				right := s.redis.HGet(t.Context(), key, keyspace.ShardsField).Val()
				s.redis.HSet(t.Context(), key, keyspace.ShardsField, shards)
				want := fmt.Sprintf("the layout of namespace %q is damaged: it has %q shards, and there can be 1 to 16384", s.namespace, shards)
				if err := New(s.redis, s.namespace, 4).Adopt(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("a new process: %v, want %s", err, want)
				}
				n := NewNamespace(s)
				if err := n.CheckLayout(t.Context()); err == nil || !strings.Contains(err.Error(), want) || n.Store() != s {
					t.Errorf("a process that runs: %v, want %s", err, want)
				}
				refused := fmt.Sprintf("the layout of namespace %q has shards %q", s.namespace, shards)
				if _, err := (&reshard.Resharder{Redis: s.redis, Namespace: s.namespace}).Layout(t.Context()); err == nil || err.Error() != refused {
					t.Errorf("weir reshard: %v, want %s", err, refused)
				}
				s.redis.HSet(t.Context(), key, keyspace.ShardsField, right)
				s.redis.HSet(t.Context(), keyspace.ProgressKey(s.tags[1]), keyspace.ShardsField, shards)
				if err := New(s.redis, s.namespace, 4).Adopt(t.Context()); err != nil {
					t.Errorf("a shard that records it: %v", err)
				}
			})
		})
	}
}
