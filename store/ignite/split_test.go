package ignite

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/ignitetest"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/ignite/thin"
	"github.com/weir-stream/weir/store/values"
)

// While nodes are in different clusters, nothing is read or written, whatever connection it would go to. When those of one side have
// ended, work goes on with what the other side has.
func TestNodesOfTwoClusters(t *testing.T) {
	one, other := ignitetest.New(t, 1), ignitetest.New(t, 1)
	addresses := slices.Sorted(slices.Values(append(one.Addresses(), other.Addresses()...)))
	config := Config{Client: client(t, one), Namespace: testkit.Namespace(t), Shards: 2, Slack: time.Hour}
	if err := New(config).Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	both := thin.New(thin.Config{Addresses: addresses, Login: thin.Login{Timeout: 10 * time.Second}, Request: 20 * time.Second})
	t.Cleanup(func() { _ = both.Close() })
	config.Client = both
	s := New(config)
	want := fmt.Sprintf("these nodes are in different clusters: %s | %s. If they should be in one, restart all but those of one side; "+
		"else name only nodes of one cluster", addresses[0], addresses[1])
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, state.ErrUnavailable) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", what, err, want)
		}
	}
	key := values.Key{Shard: 1}
	write := func() error {
		return s.engine.Update(t.Context(), 1, []values.Key{key}, func([][]byte) []values.Write {
			return []values.Write{{Key: key, Bytes: []byte("x")}}
		})
	}
	refused("a read", s.engine.Read(t.Context(), []values.Key{key})[0].Err)
	refused("a write", write())
	refused("removing", s.engine.Empty(t.Context(), 1, func([]byte) bool { return false }))
	refused("as far as is known", s.engine.Down())
	if err := s.Ready(t.Context()); err == nil {
		t.Error("the namespace is ready")
	}
	if err := other.Nodes[0].Kill(); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, time.Minute, "the nodes of one cluster are left", func() (bool, string) {
		err := errors.Join(s.Ready(t.Context()), s.engine.Down())
		return err == nil, fmt.Sprint(err)
	})
	if err := write(); err != nil {
		t.Error(err)
	}
	if v := New(Config{Client: client(t, one), Namespace: config.Namespace, Shards: 2}).engine.Read(t.Context(), []values.Key{key})[0]; v.Err != nil || string(v.Bytes) != "x" {
		t.Errorf("the cluster that is left has %q, error %v", v.Bytes, v.Err)
	}
}
