package redisstore

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Keys are counted by group, without those of other namespaces. Of many keys a sample gives an estimate.
func TestCountKeys(t *testing.T) {
	t.Parallel()
	for name, connect := range ownServers() {
		t.Run(name, func(t *testing.T) { testCountKeys(t, newStore(t, connect(t), 4)) })
	}
}

func testCountKeys(t *testing.T, s *Store) {
	pipe := s.redis.Pipeline()
	const devices, users = 9000, 3000
	for i := range devices + users {
		group := "aa"
		if i >= devices {
			group = "bb"
		}
		pipe.Set(t.Context(), string(keyspace.AppendKey(nil, s.tags[i%len(s.tags)], group, fmt.Append(nil, i))), "x", 0)
	}
	for i := range 100 {
		pipe.Set(t.Context(), fmt.Sprintf("{another%s:0}aa:%d", s.namespace, i), "x", 0)
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, err := s.CountKeys(t.Context(), 1<<40)
	if err != nil || all.Looked != all.Keys || !maps.Equal(all.Groups, map[string]int64{"aa": devices, "bb": users}) {
		t.Errorf("unexpected counts %+v, error %v", all, err)
	}
	if strings.HasSuffix(t.Name(), "/miniredis") {
		return // its keys come sorted, which is not a fair sample
	}
	some, err := s.CountKeys(t.Context(), 2000)
	if err != nil || some.Looked >= some.Keys {
		t.Fatalf("estimated %+v of %d keys, error %v; want fewer keys to be read", some, all.Keys, err)
	}
	for group, n := range map[string]int64{"aa": devices, "bb": users} {
		if got := some.Groups[group]; got < n*8/10 || got > n*12/10 {
			t.Errorf("%d keys of group %s are estimated as %d", n, group, got)
		}
	}
}
