package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

func busiestOf(entity string) state.Busiest {
	return state.Busiest{Since: 1, Keys: []state.BusiestKey{{Key: "device", Entities: []state.BusyEntity{{Entity: entity, Events: 3}}}}}
}

// What a processor published is forgotten after it ends: another processor drops it, or it expires.
func TestBusiestIsForgotten(t *testing.T) {
	server := redistest.Embedded(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	s := newStore(t, client, 4)
	began := time.Now()
	pass := func(after time.Duration) {
		server.FastForward(after)
		began = began.Add(after)
		server.SetTime(began)
	}
	server.SetTime(began)
	publish := func(processor string) {
		t.Helper()
		if err := s.PublishBusiest(t.Context(), processor, busiestOf(processor)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(what string, want ...string) {
		t.Helper()
		list, err := s.Busiest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, b := range list {
			got = append(got, b.Keys[0].Entities[0].Entity)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	publish("a")
	pass(state.BusiestFor / 2)
	publish("b")
	expect("two processors", "a", "b")
	pass(state.BusiestFor/2 + time.Second)
	publish("b")
	expect("one that goes on", "b")
	pass(state.BusiestFor + time.Second)
	expect("none")
}

// If keys hash entities, nothing that is published names one.
func TestBusiestAreHashed(t *testing.T) {
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
	client := redistest.Shared(t).Client(t)
	s := newStore(t, client, 4)
	if err := client.HSet(t.Context(), busiestKey(s.namespace), "x", "1:{").Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Busiest(t.Context()); err == nil || err.Error() != "read the busiest entities of x: unexpected end of JSON input" {
		t.Errorf("got %v", err)
	}
}
