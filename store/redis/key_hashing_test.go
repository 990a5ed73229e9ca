package redisstore

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

var (
	secret      = []byte("0123456789abcdef")
	otherSecret = []byte("fedcba9876543210")
)

// State under hashed entities is written, read and inspected like any other, and no key names an
// entity.
func TestHashedEntities(t *testing.T) {
	t.Parallel()
	onEach(t, 3, func(t *testing.T, plain *Store) {
		ctx := context.Background()
		s := New(plain.redis, plain.namespace+"-hashed", 3, HashEntities(secret))
		if err := s.Create(ctx); err != nil {
			t.Fatal(err)
		}
		start(t, s, transactions)
		b := begin(t, s, transactions)
		fill(b, 0, event{offset: 0, device: "jane.doe", user: "u1", time: 101 * day}, event{offset: 1, device: "jane.doe", user: "u2", time: 101 * day},
			event{offset: 2, device: "john.roe", user: "u1", time: 101 * day})
		apply(t, s.newWriter(), b)
		for entity, want := range map[string]int64{"jane.doe": 2, "john.roe": 1} {
			windowStates, err := s.Read(ctx, []state.Read{{Series: events, Entity: entity, First: 101, Last: 101}, {Series: ever, Entity: entity}})
			if err != nil || windowStates[0].Buckets[0].Value.Num != want || windowStates[1].Buckets[0].Value.Num != want {
				t.Errorf("the counts of %s are %+v, error %v; want %d of each", entity, windowStates, err, want)
			}
			held, err := s.Inspect(ctx, events, entity)
			if err != nil || len(held.Packed) == 0 || strings.Contains(held.Key, entity) {
				t.Errorf("%s is held under the key %q in %d bytes, error %v; want some bytes under a key without its name", entity, held.Key, len(held.Packed), err)
			}
			// HMAC-SHA256, cut to 16 bytes, is 22 characters of base64.
			_, name, _ := strings.Cut(strings.SplitN(held.Key, "}", 2)[1], ":")
			if len(name) != 22 {
				t.Errorf("the key of %s has the hash %q of %d characters, want 22", entity, name, len(name))
			}
			if want := keyspace.ShardOfName([]byte(name), 3); held.Shard != want {
				t.Errorf("%s is in shard %d, want %d", entity, held.Shard, want)
			}
		}
		if held, err := New(s.redis, s.namespace, 3).Inspect(ctx, events, "jane.doe"); err != nil || held.Packed != nil {
			t.Errorf("without hashing, the key %q has %d bytes, error %v; want none", held.Key, len(held.Packed), err)
		}
	})
}

// The hash is the standard one: openssl dgst -sha256 -hmac.
func TestHashIsHMAC(t *testing.T) {
	t.Parallel()
	s := New(redis.NewClient(&redis.Options{}), "ns", 1, HashEntities(secret))
	got := string(s.appendEntityKey(nil, 0, "g", []byte("jane.doe")))
	if want := "{ns:0gra}g:m9NbAJ8T1CixOGvs8st7EA"; got != want {
		t.Errorf("the key is %q, want %q", got, want)
	}
	got = string(s.appendEntityKey(nil, 0, "g", []byte("jane.doe|d1")))
	if want := "{ns:0gra}g:m9NbAJ8T1CixOGvs8st7EA|YBy3ydcSWwkjtXZlG1vqvA"; got != want {
		t.Errorf("the key of a child is %q, want %q", got, want)
	}
}

// A namespace is used with the secret that it was made with, or refused.
func TestNamespaceWithAnotherSecret(t *testing.T) {
	t.Parallel()
	onEach(t, 2, func(t *testing.T, s *Store) {
		ctx := context.Background()
		name := func(kind string) string { return s.namespace + "-" + kind }
		open := func(kind string, secret []byte) *Store { return New(s.redis, name(kind), 2, HashEntities(secret)) }
		for kind, key := range map[string][]byte{"plain": nil, "hashed": secret} {
			if err := open(kind, key).Create(ctx); err != nil {
				t.Fatal(err)
			}
			if err := open(kind, key).Create(ctx); err != nil {
				t.Errorf("a second Create of the %s namespace: got error %v, want none", kind, err)
			}
		}
		hashed, other := open("", secret).hashing.Layout(), open("", otherSecret).hashing.Layout()
		for _, c := range []struct {
			kind          string
			key           []byte
			found, wanted string
		}{
			{"plain", secret, "off", hashed}, {"hashed", nil, hashed, "off"},
			{"hashed", otherSecret, hashed, other},
		} {
			want := fmt.Sprintf("namespace %q was made with hash_entities %s, not %s: use hash_entities %s, or another namespace",
				name(c.kind), c.found, c.wanted, c.found)
			for what, err := range map[string]error{"check": open(c.kind, c.key).CheckLayout(ctx), "create": open(c.kind, c.key).Create(ctx)} {
				if fmt.Sprint(err) != want {
					t.Errorf("%s of the %s namespace with hash_entities %s\ngot  error %v\nwant %s", what, c.kind, c.wanted, err, want)
				}
			}
		}
	})
}
