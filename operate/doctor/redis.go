package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/internal/reworded"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Namespace compares a namespace with the settings.
type Namespace interface {
	// Adopt takes the number of shards from the namespace, if it exists, and compares the rest of the layout.
	Adopt(ctx context.Context) error
	// Secret returns the secret of the namespace; a zero one, or store.ErrNoNamespace, if it does not exist yet.
	Secret(ctx context.Context) (state.Secret, error)
	Shards() int
}

// Layout is a Namespace of which is known how its shards lie on masters.
type Layout interface {
	Namespace
	// ShardsByMaster returns the number of shards of each master, by address.
	ShardsByMaster(ctx context.Context) (map[string]int, error)
	// Unfinished returns the number of shards that the namespace is being spread over, 0 if it is not, and how many of its
	// shards lack keys.
	Unfinished(ctx context.Context) (to, lacking int, err error)
}

// Adopt takes the number of shards from a namespace, and says how its layout fits the settings; the error says how it
// does not.
func Adopt(ctx context.Context, n Namespace) (fits string, err error) {
	setting := n.Shards()
	if err := n.Adopt(ctx); err != nil {
		return "", err
	}
	secret, err := n.Secret(ctx)
	switch has := n.Shards(); {
	case errors.Is(err, store.ErrNoNamespace) || err == nil && secret == (state.Secret{}):
		return "the namespace is new", nil
	case err != nil:
		return "", err
	case has != setting:
		return fmt.Sprintf("fits the settings; it has %d shards, and shards: %d is for a new namespace", has, setting), nil
	}
	return "fits the settings", nil
}

// Redis checks the servers, which may evict keys if that is allowed, and the layout of the namespace on them.
func Redis(ctx context.Context, client redis.UniversalClient, layout Layout, eviction bool) (f Findings) {
	if err := client.Ping(ctx).Err(); err != nil {
		f.unreached(Fail, "redis", err, "check that it runs at redis.addresses, and who has access")
		return f
	}
	fits, misfit := Adopt(ctx, layout)
	if cluster, ok := client.(*redis.ClusterClient); ok {
		f = redisCluster(ctx, cluster, layout, eviction)
	} else {
		f = redisServer(ctx, "redis", client, false, eviction)
	}
	switch {
	case misfit != nil && !errors.Is(misfit, store.ErrLayout):
		f.add(Fail, "layout", reworded.Plainly(misfit).Error(), "repair masters that do not answer, or let the user of redis.username run HGETALL and HMGET")
	case misfit != nil:
		f.add(Fail, "layout", misfit.Error(), "set what the namespace was made with, or another namespace")
	default:
		f.ok("layout", "%s", fits)
	}
	if misfit == nil {
		f.unfinished(ctx, layout)
	}
	return f
}

// unfinished finds what is left of a resharding.
func (f *Findings) unfinished(ctx context.Context, layout Layout) {
	shards := layout.Shards()
	switch to, lacking, err := layout.Unfinished(ctx); {
	case err != nil:
		f.unreached(Fail, "reshard", err, "repair masters that do not answer, or let the user of redis.username run HGETALL and HMGET")
	case lacking > 0:
		f.add(Fail, "reshard", fmt.Sprintf("%d of %d shards lack keys, which a failover has lost while they were copied: their answers are UNAVAILABLE, and their events wait",
			lacking, shards), fmt.Sprintf("run weir reshard --to %d --yes", shards))
	case to > 0:
		f.add(Warn, "reshard", fmt.Sprintf("the namespace is being spread over %d shards", to),
			fmt.Sprintf("if no weir reshard is running, run weir reshard --to %d --yes, or weir reshard --cancel", to))
	}
}

// redisCluster checks a cluster, over which shards are spread, and all its masters.
func redisCluster(ctx context.Context, cluster *redis.ClusterClient, layout Layout, eviction bool) (f Findings) {
	text, err := cluster.ClusterInfo(ctx).Result()
	switch info := ParseInfo(text); {
	case err != nil:
		f.unreached(Fail, "redis", err, "see what CLUSTER INFO says")
	case info["cluster_state"] != "ok" || info["cluster_slots_assigned"] != "16384": // depending on its settings, the state may be ok without all slots
		f.add(Fail, "redis", fmt.Sprintf("the cluster's state is %s, with %s of 16384 slots assigned", info["cluster_state"], info["cluster_slots_assigned"]),
			"see CLUSTER NODES for masters that are lost")
	default:
		f.ok("redis", "a cluster of %s masters", info["cluster_size"])
		masters, _ := strconv.Atoi(info["cluster_size"])
		f.spread(masters, layout.Shards())
		if held, err := layout.ShardsByMaster(ctx); err != nil {
			f.unreached(Fail, "shards", err, "see CLUSTER SLOTS for slots without a master")
		} else {
			f.balance(masters, layout.Shards(), held)
		}
	}
	var mu sync.Mutex // masters are visited concurrently
	byAddress := map[string]Findings{}
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		of := redisServer(ctx, "redis "+c.Options().Addr, c, true, eviction)
		mu.Lock()
		defer mu.Unlock()
		byAddress[c.Options().Addr] = of
		return nil
	})
	if err != nil {
		f.unreached(Fail, "redis", err, "see CLUSTER NODES for masters that are lost")
	}
	var servers []Findings
	for _, of := range byAddress {
		servers = append(servers, of)
	}
	slices.SortFunc(servers, func(a, b Findings) int { return cmp.Compare(a[0].Subject, b[0].Subject) })
	return append(f, slices.Concat(servers...)...)
}

// spread checks the number of shards for the number of masters.
func (f *Findings) spread(masters, shards int) {
	if want := cost.ShardsFor(masters); shards < want {
		to := (want + shards - 1) / shards * shards // a multiple
		f.add(Warn, "shards", fmt.Sprintf("%d over %d masters: whole shards are spread, and so few cannot be spread evenly", shards, masters),
			fmt.Sprintf("spread the namespace over more: weir reshard --to %d; see More shards in docs/scale.md", to))
		return
	}
	f.ok("shards", "%d over %d masters", shards, masters)
}

// balance checks how evenly the shards are spread, given the number on each master, by address.
func (f *Findings) balance(masters, shards int, held map[string]int) {
	fullest := slices.MaxFunc(slices.Sorted(maps.Keys(held)), func(a, b string) int { return cmp.Compare(held[a], held[b]) })
	even := (shards + masters - 1) / masters
	if held[fullest] > even {
		f.add(Warn, "balance", fmt.Sprintf("%s holds %d of %d shards; spread evenly over %d masters, none would hold more than %d",
			fullest, held[fullest], shards, masters, even),
			"give all masters equally many slots: redis-cli --cluster rebalance ADDRESS --cluster-use-empty-masters; see Add Redis masters in docs/scale.md")
		return
	}
	f.ok("balance", "no master holds more than %d of %d shards", even, shards)
}

// redisServer checks one server.
func redisServer(ctx context.Context, subject string, client redis.Cmdable, cluster, eviction bool) (f Findings) {
	text, err := client.Info(ctx).Result()
	if err != nil {
		f.unreached(Fail, subject, err, "let the user of redis.username run INFO")
		return f
	}
	s := server{subject: subject, info: ParseInfo(text), config: map[string]string{}, cluster: cluster, eviction: eviction}
	for _, name := range []string{"save", "stop-writes-on-bgsave-error", "min-replicas-to-write", "aof-load-truncated", "rdbcompression", "auto-aof-rewrite-percentage"} {
		values, err := client.ConfigGet(ctx, name).Result()
		if err != nil {
			break // a provider forbids CONFIG, or the user may not run it
		}
		if value, known := values[name]; known {
			s.config[name] = value
		}
	}
	asked := time.Now()
	at, err := client.Time(ctx).Result()
	if err != nil {
		f.unreached(Fail, subject, err, "let the user of redis.username run TIME")
		return f
	}
	s.skew = at.Sub(asked.Add(time.Since(asked) / 2))
	return append(f, s.judge()...)
}
