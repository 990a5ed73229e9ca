package values_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
	"github.com/weir-stream/weir/store/values"
)

// engine keeps values in a map.
type engine struct {
	mu     sync.Mutex
	values map[values.Key][]byte
}

func (e *engine) Read(_ context.Context, keys []values.Key) []values.Value {
	e.mu.Lock()
	defer e.mu.Unlock()
	found := make([]values.Value, len(keys))
	for i, k := range keys {
		found[i].Bytes = e.values[k]
	}
	return found
}

func (e *engine) Update(_ context.Context, _ int, keys []values.Key, change func([][]byte) []values.Write) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	held := make([][]byte, len(keys))
	for i, k := range keys {
		held[i] = e.values[k]
	}
	for _, w := range change(held) {
		e.values[w.Key] = w.Bytes
	}
	return nil
}

func (e *engine) Empty(_ context.Context, shard int, begun func(record []byte) bool) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !begun(e.values[values.Key{Shard: shard}]) {
		maps.DeleteFunc(e.values, func(k values.Key, _ []byte) bool { return k.Shard == shard && k.Group != "" })
	}
	return nil
}

func (*engine) Clock(int) int64     { return time.Now().UnixMilli() }
func (*engine) Available(int) error { return nil }
func (*engine) Down() error         { return nil }

func open(e *engine, shards int) *values.Store {
	return values.New(e, values.Options{Shards: shards, Slack: time.Hour, Now: time.Now})
}

// A namespace of another layout is refused, with what differs, and keeps its state.
func TestLayouts(t *testing.T) {
	e := &engine{values: map[values.Key][]byte{}}
	if err := open(e, 4).CheckLayout(t.Context()); err != nil {
		t.Errorf("a namespace that does not exist: %v", err)
	}
	if _, err := open(e, 4).Secret(t.Context()); err == nil || err.Error() != "the namespace does not exist yet" {
		t.Errorf("the secret of a namespace that does not exist: error %v", err)
	}
	for range 2 {
		if err := open(e, 4).Create(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	first, err := open(e, 4).Secret(t.Context())
	second, err2 := open(e, 4).Secret(t.Context())
	if err != nil || err2 != nil || first != second || first == (state.Secret{}) {
		t.Errorf("two stores have the secrets %v and %v, errors %v and %v", first.Text(), second.Text(), err, err2)
	}
	layout := slices.Collect(maps.Keys(e.values))[0]
	for text, want := range map[string]string{
		`{"format":1,"shards":5}`:                "the namespace has another layout: shards is 5, want 4",
		`{"format":9,"shards":4}`:                "the namespace has another layout: format is 9, want 1",
		`{"format":1,"shards":4,"secret":"???"}`: "the namespace has another layout: its secret cannot be read: ",
		`[`:                                      "the namespace has another layout: its layout cannot be read: ",
	} {
		e.values[layout] = []byte(text)
		for _, err := range []error{open(e, 4).CheckLayout(t.Context()), open(e, 4).Create(t.Context())} {
			if !errors.Is(err, store.ErrLayout) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: error %v, want a store.ErrLayout: %s", text, err, want)
			}
		}
		if string(e.values[layout]) != text {
			t.Errorf("%s became %s", text, e.values[layout])
		}
	}
}

// A layout that is lost is made again, with the secret of the state that is left.
func TestLayoutIsLost(t *testing.T) {
	e := &engine{values: map[values.Key][]byte{}}
	first := open(e, 4)
	if err := first.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	layout := slices.Collect(maps.Keys(e.values))[0]
	secret, err := first.Secret(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := state.Partition{Topic: "tx"}
	from, to := slices.Repeat([]state.Position{state.NoPosition}, 4), slices.Repeat([]state.Position{{Offset: 0, Epoch: -1}}, 4)
	if n, err := first.Place(t.Context(), state.Placement{Partition: p, From: from, To: to, Partitions: 1}); err != nil || n != 4 {
		t.Fatalf("%d placed, error %v", n, err)
	}
	delete(e.values, layout)
	second := open(e, 4)
	if err := second.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := second.Secret(t.Context()); err != nil || again != secret {
		t.Errorf("the secret is another one, error %v", err)
	}
	// With all state lost, a process that lives makes the layout again with the secret that it knows.
	clear(e.values)
	if err := first.CheckLayout(t.Context()); err != nil {
		t.Fatal(err)
	}
	if again, err := open(e, 4).Secret(t.Context()); err != nil || again != secret {
		t.Errorf("after all was lost, the secret is another one, error %v", err)
	}
}

var (
	counted = &state.Series{ID: "count", Group: "users", By: []string{"user"}, Measure: state.CountEvents}
	topic   = state.Partition{Topic: "tx"}
)

// claim makes the namespace, and claims a partition of which nothing was applied.
func claim(t *testing.T, s *values.Store) *state.Batch {
	t.Helper()
	if err := s.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Place(t.Context(), state.Placement{Partition: topic, From: []state.Position{state.NoPosition}, To: []state.Position{{Epoch: -1}}, Partitions: 1}); err != nil {
		t.Fatal(err)
	}
	claims, err := s.Claim(t.Context(), []state.Partition{topic}, state.Claimant{Version: "v"})
	if err != nil {
		t.Fatal(err)
	}
	b := &state.Batch{Ranges: []state.PartitionRange{{Partition: topic.WithPlan("v"), To: 1, Progress: claims[0].Progress}}, Series: []*state.Series{counted}}
	b.Update(0, 0, []byte("u1"))
	b.Add(state.Mutation{Series: counted, Num: 1})
	return b
}

// A process that knows the secret of a namespace which was lost, and made again by another process, writes nothing with it.
func TestSecretIsAnother(t *testing.T) {
	e := &engine{values: map[values.Key][]byte{}}
	first, second := open(e, 1), open(e, 1)
	b := claim(t, first)
	clear(e.values)
	claim(t, second)
	writer := first.NewWriter()
	before := maps.Clone(e.values)
	if err := writer.Apply(t.Context(), b); err == nil || err.Error() != "the state was lost, and is written with another secret now" {
		t.Errorf("with the old secret: error %v", err)
	}
	if !maps.EqualFunc(before, e.values, slices.Equal) {
		t.Error("something was written with the old secret")
	}
	if err := writer.Apply(t.Context(), b); err != nil || b.Ranges[0].Behind {
		t.Errorf("with the new secret: behind %v, error %v", b.Ranges[0].Behind, err)
	}
	known, err := first.Secret(t.Context())
	if want, _ := second.Secret(t.Context()); err != nil || known != want {
		t.Errorf("the secret is not the new one, error %v", err)
	}
}

// The value of an entity under the key of another one is noticed.
func TestValueOfAnother(t *testing.T) {
	e := &engine{values: map[values.Key][]byte{}}
	s := open(e, 1)
	b := claim(t, s)
	if err := s.NewWriter().Apply(t.Context(), b); err != nil || b.Ranges[0].Behind {
		t.Fatalf("behind %v, error %v", b.Ranges[0].Behind, err)
	}
	first, second := values.Key{Group: "users", Entity: "u1"}, values.Key{Group: "users", Entity: "u2"}
	e.values[second] = e.values[first]
	if group, entity, err := values.Owner(e.values[first]); group != "users" || entity != "u1" || err != nil {
		t.Errorf("the value is of %q in %q, error %v", entity, group, err)
	}
	for entity, want := range map[string]string{"u1": "<nil>", "u2": "the value is that of another entity"} {
		found, err := s.Read(t.Context(), []state.Read{{Series: counted, Entity: entity}})
		if err != nil || fmt.Sprint(found[0].Err) != want {
			t.Errorf("%s: error %v and %v, want %s", entity, err, found[0].Err, want)
		}
	}
}
