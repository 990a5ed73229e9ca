package redisstore

import (
	"testing"

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
