package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/redis/keyspace"
	"github.com/weir-stream/weir/value"
)

var seenUsers = &state.Series{
	ID: "seenx", Group: "devic", By: []string{"device"}, Measure: state.Seen, Type: value.String,
	Tile: day, Keep: 8 * day, GroupKeep: 9 * day, Max: 100, Rate: 0.001,
}

// meeting is a batch of one event with an id, in which device "d" meets a user.
func meeting(t *testing.T, s *Store, user, id string) *state.Batch {
	b := begin(t, s, transactions)
	b.Now, b.Series = 100*day, []*state.Series{events, seenUsers, ids}
	offset := b.Ranges[0].Progress[0].Offset
	b.Ranges[0].To = offset + 1
	b.Update(0, offset, []byte("d"))
	b.Add(state.Mutation{Series: events, Tile: 100, Num: 1})
	b.Add(state.Mutation{Series: seenUsers, Tile: 100, Text: &state.Text{Member: []byte(user)}})
	b.Add(state.Mutation{Series: ids, Tile: 100 * day / ids.Tile, Text: &state.Text{Member: []byte(id)}})
	return b
}

// seen says for each user whether "d" has met them, and how many events it counts, including
// pending ones.
func seen(t *testing.T, s store.Reader, pending *state.Batch, users ...string) (met []bool, count int64) {
	t.Helper()
	reads := []state.Read{{Series: seenUsers, Entity: "d", First: 93, Last: 100}, {Series: events, Entity: "d", First: 93, Last: 100}}
	windowStates, err := s.Read(t.Context(), reads)
	if pending != nil {
		windowStates, err = s.ReadOverlay(t.Context(), reads, pending)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, user := range users {
		met = append(met, windowStates[0].Filter != nil && windowStates[0].Filter.Has([]byte(user)))
	}
	for _, b := range windowStates[1].Buckets {
		count += b.Value.Num
	}
	return met, count
}

// Namespaces have their own secrets, and processes that make one concurrently agree.
func TestSecretsOfNamespaces(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		known := map[state.Secret]string{}
		for n := range 8 {
			name := fmt.Sprint(s.namespace, "-", n)
			makers := make([]*Store, 8)
			var making sync.WaitGroup
			for i := range makers {
				makers[i] = New(s.redis, name, 1)
				making.Go(func() {
					if err := makers[i].Create(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			making.Wait()
			if t.Failed() {
				return
			}
			secret := *makers[0].secret.Load()
			for _, m := range makers {
				if *m.secret.Load() != secret {
					t.Errorf("two processes that made namespace %s concurrently have two secrets", name)
				}
			}
			if known[secret] != "" || secret == (state.Secret{}) {
				t.Errorf("namespace %s has the secret of namespace %q, or none", name, known[secret])
			}
			known[secret] = name
		}
	})
}

// overtaking runs something before the first command with a name.
type overtaking struct {
	name   string
	happen func()
	done   atomic.Bool
}

func (o *overtaking) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *overtaking) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == o.name && o.done.CompareAndSwap(false, true) {
			o.happen()
		}
		return next(ctx, cmd)
	}
}

func (o *overtaking) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// A process that found no namespace, and is overtaken by another one that makes it, uses the other's secret.
func TestFirstSecretWins(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		patient := Deadlines(time.Minute, time.Minute) // the second waits for the first
		first, second := New(s.redis, s.namespace+"-raced", 1, patient), New(s.redis, s.namespace+"-raced", 1, patient)
		s.redis.AddHook(&overtaking{name: "eval", happen: func() {
			if err := first.Create(t.Context()); err != nil {
				t.Error(err)
			}
		}})
		if err := second.Create(t.Context()); err != nil {
			t.Fatal(err)
		}
		kept := s.redis.HGet(t.Context(), keyspace.LayoutKey(first.namespace), keyspace.SecretField).Val()
		if a, b := first.secret.Load().Text(), second.secret.Load().Text(); a != kept || b != kept {
			t.Errorf("the first process has the secret %s, the second %s; want the stored one, %s", a, b, kept)
		}
	})
}

// An API that starts before its namespace exists answers from it as soon as it does, and continues after it was emptied
// and created again with another secret.
func TestSecretIsDiscovered(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		api := New(s.redis, s.namespace+"-late", 1)
		if err := api.CheckLayout(t.Context()); err != nil {
			t.Fatal(err)
		}
		if met, n := seen(t, api, meeting(t, api, "u1", "e"), "u1"); !met[0] || n != 1 {
			t.Errorf("a pending event without a namespace: the user is seen: %v, %d events; want true and 1", met[0], n)
		}
		for _, user := range []string{"u1", "u2"} {
			for _, key := range []string{keyspace.LayoutKey(api.namespace), keyspace.ProgressKey(api.tags[0]), string(api.appendKey(nil, events, "d"))} {
				if err := s.redis.Del(t.Context(), key).Err(); err != nil {
					t.Fatal(err)
				}
			}
			processor := New(s.redis, api.namespace, 1)
			if err := processor.Create(t.Context()); err != nil {
				t.Fatal(err)
			}
			start(t, processor, transactions)
			apply(t, processor.newWriter(), meeting(t, processor, user, "e"))
			api.layoutRead.Store(0) // longer ago than maxLayoutAge
			met, _ := seen(t, api, nil, user)
			for deadline := time.Now().Add(time.Minute); !met[0] && time.Now().Before(deadline); {
				met, _ = seen(t, api, nil, user)
			}
			if !met[0] {
				t.Errorf("%s is not seen after an event of it was applied", user)
			}
		}
	})
}

// A layout without a valid secret is refused without showing it.
func TestLayoutWithoutSecret(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		for secret, found := range map[string]string{"": "no", "c2hvcnQ=": "a damaged"} {
			if err := s.redis.HSet(t.Context(), keyspace.LayoutKey(s.namespace), keyspace.SecretField, secret).Err(); err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprintf("namespace %q has %s secret to hash values with, so its state cannot be read: use another namespace", s.namespace, found)
			other := New(s.redis, s.namespace, 2)
			for what, err := range map[string]error{"check": other.CheckLayout(t.Context()), "create": other.Create(t.Context())} {
				if fmt.Sprint(err) != want {
					t.Errorf("%s:\ngot  %v\nwant %s", what, err, want)
				}
			}
		}
	})
}

// Nothing is hashed without the secret: state of a namespace that was never made is not written.
func TestWriterNeedsSecret(t *testing.T) {
	t.Parallel()
	onEach(t, 1, func(t *testing.T, s *Store) {
		start(t, s, transactions)
		none := New(s.redis, s.namespace+"-none", 1)
		err := none.newWriter().Apply(t.Context(), meeting(t, s, "u", "e"))
		if want := fmt.Sprintf("namespace %q has not been created", none.namespace); fmt.Sprint(err) != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	})
}

// A process that has learnt another secret, from a server that was no longer the master, neither writes nor reads with it. It learns
// the right one.
func TestShardsHaveOneSecret(t *testing.T) {
	t.Parallel()
	for name, client := range servers {
		t.Run(name, func(t *testing.T) {
			s, ctx := newStore(t, client(t), 4), t.Context()
			start(t, s, transactions)
			right, other := *s.secret.Load(), state.NewSecret()
			paid := func(offset int64) *state.Batch {
				b := begin(t, s, transactions)
				fill(b, 0, event{offset: offset, device: "d0", user: "u0", time: 100 * day, cents: 5})
				return b
			}
			apply(t, s.newWriter(), paid(0))

			s.secret.Store(&other)
			b, w := paid(1), s.newWriter()
			if err := w.Apply(ctx, b); err == nil || !strings.Contains(err.Error(), "the state was lost, and is written with another secret now") {
				t.Errorf("written with another secret: error %v", err)
			}
			if got := *s.secret.Load(); got != right {
				t.Error("the right secret is not learnt after a write")
			}
			apply(t, w, b)
			checkAll(t, s, []event{{offset: 0, device: "d0", user: "u0", time: 100 * day, cents: 5}, {offset: 1, device: "d0", user: "u0", time: 100 * day, cents: 5}})

			s.secret.Store(&other)
			if _, err := s.History(ctx); !errors.Is(err, errOtherSecret) {
				t.Errorf("a history with another secret: error %v", err)
			}
			testkit.Eventually(t, time.Minute, "the right secret is learnt after a question", func() (bool, string) {
				_, err := s.History(ctx)
				return err == nil && *s.secret.Load() == right, fmt.Sprint(err)
			})
		})
	}
}

// Nothing is to be applied of no partitions, also while the namespace is still being created.
func TestNothingIsApplied(t *testing.T) {
	t.Parallel()
	s := New(miniredis(t), testkit.Namespace(t), 2)
	if err := s.newWriter().Apply(t.Context(), &state.Batch{EveryShard: true}); err != nil {
		t.Error(err)
	}
}
