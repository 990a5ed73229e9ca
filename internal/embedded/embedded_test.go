package embedded_test

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/embedded"
	"github.com/weir-stream/weir/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

var ctx = context.Background()

func embeddedClient(t *testing.T) *redis.Client {
	t.Helper()
	m, err := embedded.Redis()
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	t.Cleanup(func() { _ = client.Close(); m.Close() })
	return client
}

// tiles adds values [0,1000), [500,1500) and [1000,2000): 2,000 in the union,
// 3,000 in the sum.
func tiles(t *testing.T, client *redis.Client, ns string) (keys []string) {
	t.Helper()
	for _, from := range []int{0, 500, 1000} {
		key := fmt.Sprintf("{%s}:%d", ns, from)
		var values []any
		for i := range 1000 {
			values = append(values, fmt.Sprint("value-", from+i))
		}
		if err := client.PFAdd(ctx, key, values...).Err(); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return append(keys, "{"+ns+"}:absent")
}

func near(t *testing.T, what string, got any, want float64) {
	t.Helper()
	n, ok := got.(int64)
	// HyperLogLog's standard error with 2^14 registers is 0.81%.
	if !ok || math.Abs(float64(n)-want) > 3*0.0081*want {
		t.Errorf("%s = %v (%T), want about %v", what, got, got, want)
	}
}

func TestPFCountUnites(t *testing.T) {
	real := testkit.Redis(t).Client(t)
	for name, client := range map[string]*redis.Client{"redis": real, "embedded": embeddedClient(t)} {
		t.Run(name, func(t *testing.T) {
			ns := testkit.Namespace(t)
			keys := tiles(t, client, ns)
			t.Cleanup(func() { client.Del(context.Background(), keys...) })

			near(t, "one key", client.PFCount(ctx, keys[0]).Val(), 1000)
			near(t, "the union", client.PFCount(ctx, keys...).Val(), 2000)
			near(t, "the same key twice", client.PFCount(ctx, keys[0], keys[0]).Val(), 1000)
			near(t, "the union again", client.PFCount(ctx, keys...).Val(), 2000)

			script := `return redis.call('PFCOUNT', unpack(KEYS))`
			near(t, "in a script", client.Eval(ctx, script, keys).Val(), 2000)

			var inTx *redis.IntCmd
			_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.PFAdd(ctx, keys[3], "new")
				inTx = p.PFCount(ctx, keys...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			near(t, "in a transaction", inTx.Val(), 2001)

			client.Set(ctx, "{"+ns+"}:text", "text", time.Minute)
			wrong := client.PFCount(ctx, keys[0], "{"+ns+"}:text").Err()
			if want := "WRONGTYPE Key is not a valid HyperLogLog string value."; wrong == nil || wrong.Error() != want {
				t.Errorf("over a string = %v, want %s", wrong, want)
			}
		})
	}
}

func TestPFCountLeavesNoKey(t *testing.T) {
	client := embeddedClient(t)
	keys := tiles(t, client, "ns")
	client.PFCount(ctx, keys...)
	client.Eval(ctx, `return redis.call('PFCOUNT', unpack(KEYS))`, keys)
	if got := client.DBSize(ctx).Val(); got != 3 {
		t.Errorf("%d keys are left, want the 3 tiles: %v", got, client.Keys(ctx, "*").Val())
	}
}
