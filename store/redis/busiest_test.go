package redisstore

import (
	"strings"
	"testing"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

func busiestOf(entity string) state.Busiest {
	return state.Busiest{Since: 1, Keys: []state.BusiestKey{{Key: "device", Entities: []state.BusyEntity{{Entity: entity, Events: 3}}}}}
}

// If keys hash entities, nothing that is published names one.
func TestBusiestAreHashed(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t).Client(t)
	s := New(client, testkit.Namespace(t), 4, HashEntities([]byte("0123456789abcdef")))
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := busiestOf("jane")
	if err := s.PublishBusiest(t.Context(), "a", b); err != nil {
		t.Fatal(err)
	}
	list, err := s.Busiest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	name := string(s.hashing.AppendName(nil, []byte("jane")))
	if got := list[0]; !got.Hashed || got.Keys[0].Entities[0] != (state.BusyEntity{Entity: name, Events: 3}) {
		t.Errorf("published %+v, want the name %s", got, name)
	}
	for _, text := range client.HVals(t.Context(), busiestKey(s.namespace)).Val() {
		if strings.Contains(text, "jane") {
			t.Errorf("Redis holds the name of an entity: %s", text)
		}
	}
	if b.Hashed || b.Keys[0].Entities[0].Entity != "jane" {
		t.Errorf("publishing has changed its argument to %+v", b)
	}
}

// A value of another type in the key is an error.
func TestBusiestOfAnother(t *testing.T) {
	t.Parallel()
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 4)
	if err := client.HSet(t.Context(), busiestKey(s.namespace), "x", "{").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Busiest(t.Context()); err == nil || err.Error() != "read the busiest entities of x: unexpected end of JSON input" {
		t.Errorf("got %v", err)
	}
}
