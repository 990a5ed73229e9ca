package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// checkLongest bounds how long CheckReplicas waits for replicas that lag.
const checkLongest = 5 * time.Second

// Replica is a server that questions may be read from, as it was found.
type Replica struct {
	Address   string
	Staleness time.Duration // at the most; where Err is nil
	Err       error         // why it is not read
}

// CheckReplicas asks all replicas that ReadReplica may read from whether they
// would do, in the order of their addresses. Those that lag have until they would
// be too stale, but no longer than 5 seconds. WatchReplicas need not run. The
// error says why it is not known which replicas there are.
func (s *Store) CheckReplicas(ctx context.Context) (found []Replica, err error) {
	s.lookAtMasters(ctx)
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { again(watching, s.lookAtMasters) })
	defer watch.Wait()
	defer cancel()
	var mu sync.Mutex // replicas are visited at once
	err = s.replicas.client.ForEachSlave(ctx, func(ctx context.Context, c *redis.Client) error {
		r := s.replicas.check(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		found = append(found, r)
		return nil
	})
	slices.SortFunc(found, func(a, b Replica) int { return cmp.Compare(a.Address, b.Address) })
	return found, err
}

// check asks a replica, one that lags again and again.
func (r *replicas) check(ctx context.Context, c *redis.Client) Replica {
	patience, began := min(r.within, checkLongest), r.now()
	for {
		f, err := r.judge(c.Info(ctx, "replication"))
		_, lags := errors.AsType[staleError](err)
		switch {
		case lags && r.now().Sub(began) < patience:
			select {
			case <-ctx.Done():
			case <-time.After(lookEach):
				continue
			}
		case err == nil && !f.Replica:
			err = errors.New("it is a master")
		}
		if lags {
			err = staleError(patience)
		}
		return Replica{c.Options().NodeAddress, f.Staleness, err}
	}
}
