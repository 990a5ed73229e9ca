package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
)

// A new connection may lead to a server that has other state than the one that the history was read from: one that was
// restarted, or a replica that was promoted.
func TestHistoryIsSupersededByNewConnections(t *testing.T) {
	for name, client := range map[string]redis.UniversalClient{
		"redis":   redistest.New(t, redistest.Options{}).Client(t),
		"cluster": redistest.NewCluster(t).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t, client, 4)
			start(t, s, transactions)
			ask := func() {
				t.Helper()
				reads := []state.Read{{Series: events, Entity: "d1", First: 0, Last: 1}, {Series: events, Entity: "d2", First: 0, Last: 1}}
				if _, err := s.Read(t.Context(), reads); err != nil {
					t.Fatal(err)
				}
			}
			read := func() *state.History {
				t.Helper()
				h, err := s.History(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				return h
			}
			var before *state.History
			// Pools open further connections while several commands are under way.
			testkit.Eventually(t, time.Minute, "a read over connections that there were", func() (bool, string) {
				before = read()
				ask()
				return before.Current(), "the history is superseded"
			})
			killConnections(t, client)
			ask()
			if before.Current() {
				t.Error("the history is current although state was read over a new connection")
			}
		})
	}
}

// killConnections makes all servers close the connections of their clients.
func killConnections(t *testing.T, client redis.UniversalClient) {
	t.Helper()
	kill := func(ctx context.Context, server *redis.Client) error {
		return server.Do(ctx, "client", "kill", "type", "normal", "skipme", "no").Err()
	}
	err := error(nil)
	if cluster, ok := client.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(t.Context(), kill)
	} else {
		err = kill(t.Context(), client.(*redis.Client))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// untilServed waits until all masters are asked again.
func untilServed(t testing.TB, s *Store) {
	t.Helper()
	testkit.Eventually(t, time.Minute, "all masters", func() (bool, string) {
		for _, m := range s.Unavailable(t.Context()) {
			return false, m.Err.Error()
		}
		return true, ""
	})
}
