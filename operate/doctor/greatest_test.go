package doctor

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/defined"
	"github.com/weir-stream/weir/internal/testkit/redistest"
	"github.com/weir-stream/weir/state"
	redisstore "github.com/weir-stream/weir/store/redis"
)

const greatestDefinitions = `
streams:
  pay:
    topic: pay
    timestamp: t
    fields: {user: string, device: string}
features:
  users: COUNT_DISTINCT(7d, pay, device, user)
  count: COUNT(7d, pay, device)
  both: COUNT(7d, pay, device, user)
`

// The longest keys are found on all masters, with their entity and their features; short ones are
// not reported.
func TestGreatest(t *testing.T) {
	registry := defined.Registry(t, greatestDefinitions)
	users, _ := registry.Feature("users")
	series := users.Series[0]
	for name, client := range map[string]redis.UniversalClient{
		"single": redistest.Shared(t).Client(t), "cluster": redistest.NewCluster(t).Client(t),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, namespace := t.Context(), testkit.Namespace(t)
			s := redisstore.New(client, namespace, 16)
			if err := s.Create(ctx); err != nil {
				t.Fatal(err)
			}
			write := func(series *state.Series, entity string, kib int) {
				t.Helper()
				held, err := s.Inspect(ctx, series, entity)
				if err == nil {
					err = client.Set(ctx, held.Key, strings.Repeat("x", kib<<10), 0).Err()
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			expect := func(want ...string) {
				t.Helper()
				if diff := cmp.Diff(want, lines(Greatest(ctx, s, registry), "greatest keys")); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
			expect("OK of 0 keys the longest has 0 KiB")
			write(series, "small", 511)
			for _, entity := range []string{"a", "b", "c", "d"} {
				write(series, entity, 2)
			}
			held, err := s.Inspect(ctx, series, "foreign")
			if err != nil {
				t.Fatal(err)
			}
			client.SAdd(ctx, held.Key, "of another type")
			expect("OK of 6 keys the longest has 511 KiB")
			write(series, "hot\n", 600)
			write(&state.Series{Group: "gone"}, "x", 700)
			const do = ": see with weir state what takes the room; give those features a smaller max, wider tiles, a shorter window or keep, or leave the entity out with where"
			expect("WARN of 8 keys, that of x has 700 KiB; it holds state of features that are no longer defined"+do,
				`WARN of 8 keys, that of device=hot\n has 600 KiB; it holds state of both, count, users`+do)
		})
	}
}

type keysOf state.LongKeys

func (k keysOf) Greatest(context.Context, int, time.Duration) (state.LongKeys, error) {
	return state.LongKeys(k), nil
}

// Failed checks are reported.
func TestGreatestOfSome(t *testing.T) {
	registry := defined.Registry(t, greatestDefinitions)
	some := Greatest(t.Context(), keysOf{Keys: []state.LongKey{{Group: "g", Entity: "e", Bytes: 1}}, Looked: 7}, registry)
	if diff := cmp.Diff([]string{"OK of the first 7 keys that there was time for the longest has 1 KiB"}, lines(some, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	none := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1}) // nothing listens there
	defer none.Close()
	const want = "FAIL nothing listens at 127.0.0.1:1: check the address, and that the server runs: let the user of redis.username run SCAN, MEMORY USAGE and STRLEN"
	if diff := cmp.Diff([]string{want}, lines(Greatest(t.Context(), redisstore.New(none, "away", 4), registry), "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
