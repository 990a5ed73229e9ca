package redisstore

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/internal/testkit"
	"github.com/weir-stream/weir/internal/testkit/redistest"
)

// Each replica is reported with the state in which questions find it: one that keeps up, one that lacks what its master
// has, one that is dead, and one that is a master.
func TestCheckReplicas(t *testing.T) {
	t.Parallel()
	const within = 3 * time.Second
	master := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, master.Addr())
	good, cut, dead, promoted := redistest.NewReplica(t, master.Addr()), redistest.NewReplica(t, link.Addr()),
		redistest.NewReplica(t, master.Addr()), redistest.NewReplica(t, master.Addr())
	client := oneMaster(master.Addr(), good.Addr(), cut.Addr(), dead.Addr(), promoted.Addr(), master.Addr())
	defer client.Close()
	check := func() map[string]Replica {
		t.Helper()
		s := New(master.Client(t), testkit.Namespace(t), 8, ReadFromReplicas(client, within, slog.New(slog.DiscardHandler)))
		found, err := s.CheckReplicas(t.Context())
		if err != nil || len(found) != 5 {
			t.Fatalf("found %v, error %v; want 5 servers", found, err)
		}
		byAddress := map[string]Replica{}
		for i, r := range found {
			byAddress[r.Address] = r
			if i > 0 && r.Address < found[i-1].Address {
				t.Errorf("%s comes after %s, want the order of addresses", r.Address, found[i-1].Address)
			}
		}
		return byAddress
	}
	for address, r := range check() {
		if isMaster := address == master.Addr(); isMaster != (r.Err != nil) || r.Staleness > within || r.Staleness == 0 && !isMaster {
			t.Errorf("%s while all is well: got %+v, want a staleness up to %v, or an error if it is the master %s", address, r, within, master.Addr())
		}
	}
	link.Cut()
	dead.Kill()
	promoted.Promote()
	if err := master.Client(t).Set(context.Background(), testkit.Namespace(t), "new", 0).Err(); err != nil {
		t.Fatal(err)
	}
	found := check()
	deadPort := strings.TrimPrefix(dead.Addr(), "127.0.0.1") // go-redis drops a loopback's host
	if r := found[good.Addr()]; r.Err != nil || r.Staleness == 0 || r.Staleness > within {
		t.Errorf("the replica that keeps up: got %+v, want a staleness up to %v", r, within)
	}
	for address, want := range map[string]string{
		cut.Addr():      "it is staler than 3s",
		dead.Addr():     "dial tcp " + deadPort + ": connect: connection refused",
		promoted.Addr(): "no master of its replication was seen for 3s",
		master.Addr():   "it is a master",
	} {
		if r := found[address]; r.Err == nil || r.Err.Error() != want {
			t.Errorf("%s: got %+v, want the error %s", address, r, want)
		}
	}
}

// onceAsked calls a function when a server is first asked INFO, with other commands.
type onceAsked struct {
	sync.Once
	then func()
}

func (*onceAsked) DialHook(next redis.DialHook) redis.DialHook { return next }

func (*onceAsked) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (o *onceAsked) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, commands []redis.Cmder) error {
		err := next(ctx, commands)
		if commands[0].Name() == "info" {
			o.Do(o.then)
		}
		return err
	}
}

// A replica that only lags, as after a short fault of its link, has time to catch up.
func TestCheckReplicasWaitsForOneThatLags(t *testing.T) {
	t.Parallel()
	master := redistest.New(t, redistest.Options{})
	link := testkit.Proxy(t, master.Addr())
	replica := redistest.NewReplica(t, link.Addr())
	link.Cut()
	if err := master.Client(t).Set(context.Background(), testkit.Namespace(t), "new", 0).Err(); err != nil {
		t.Fatal(err)
	}
	client := oneMaster(master.Addr(), replica.Addr())
	defer client.Close()
	asked := &onceAsked{then: link.Heal}
	client.OnNewNode(func(c *redis.Client) {
		if c.Options().NodeAddress == replica.Addr() {
			c.AddHook(asked)
		}
	})
	s := New(master.Client(t), testkit.Namespace(t), 8, ReadFromReplicas(client, time.Minute, slog.New(slog.DiscardHandler)))
	found, err := s.CheckReplicas(t.Context())
	if err != nil || len(found) != 1 || found[0].Err != nil || found[0].Staleness == 0 {
		t.Errorf("found %+v, error %v; want one replica with a staleness", found, err)
	}
}
