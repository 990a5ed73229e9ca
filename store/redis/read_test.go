package redisstore

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

// Reads of one key share a lookup, in any position. Entities with the same text in two groups, such as a user and a
// card with the same number, have two keys.
func TestLookups(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	s := New(client, "n", 1)
	reads := []state.Read{
		{Series: events, Entity: "7"}, {Series: ever, Entity: "7"}, {Series: amount, Entity: "7"},
		{Series: users, Entity: "8"}, {Series: users, Entity: "7"},
	}
	got := map[string]string{}
	for _, l := range s.lookups(nil, reads, false) {
		got[l.key] = fmt.Sprint(l.group, " ", l.entity, " ", l.reads)
	}
	key := func(r state.Read) string { return string(s.appendKey(nil, r.Series, r.Entity)) }
	want := map[string]string{
		key(reads[0]): events.Group + " 7 [0 2 4]",
		key(reads[1]): ever.Group + " 7 [1]",
		key(reads[3]): users.Group + " 8 [3]",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the lookups differ (-want +got):\n%s", diff)
	}
}

// The same holds for many keys in any order.
func TestLookupsOfManyKeys(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{})
	defer client.Close()
	s := New(client, "n", 4)
	const entities = 50
	var reads []state.Read
	for range 2 {
		for n := range entities {
			reads = append(reads, state.Read{Series: events, Entity: fmt.Sprint(n)}, state.Read{Series: ever, Entity: fmt.Sprint(n)})
		}
	}
	list := s.lookups(nil, reads, false)
	if len(list) != 2*entities {
		t.Errorf("%d lookups, want one for each of %d keys", len(list), 2*entities)
	}
	for _, l := range list {
		if len(l.reads) != 2 {
			t.Fatalf("key %s has the reads %v, want 2", l.key, l.reads)
		}
		for _, i := range l.reads {
			if got := string(s.appendKey(nil, reads[i].Series, reads[i].Entity)); got != l.key {
				t.Errorf("read %d, of key %s, is among those of %s", i, got, l.key)
			}
		}
	}
}
