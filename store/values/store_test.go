package values_test

import (
	"context"
	"errors"
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
