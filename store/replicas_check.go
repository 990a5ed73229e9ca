package store

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
	patience, began := min(s.replicas.within, checkLongest), s.replicas.now()
	lags := func(r Replica) bool { return r.Err == staleError(patience) }
	for {
		s.lookAtMasters(ctx)
		found, err = s.replicas.check(ctx, patience)
		if err != nil || !slices.ContainsFunc(found, lags) || s.replicas.now().Sub(began) >= patience {
			return found, err
		}
		select {
		case <-ctx.Done():
			return found, nil
		case <-time.After(lookEach):
		}
	}
}

// check asks each replica once. One that lags may have had patience.
func (r *replicas) check(ctx context.Context, patience time.Duration) (found []Replica, err error) {
	var mu sync.Mutex // replicas are visited at once
	err = r.client.ForEachSlave(ctx, func(ctx context.Context, c *redis.Client) error {
		f, err := r.judge(c.Info(ctx, "replication"))
		if _, stale := errors.AsType[staleError](err); stale {
			err = staleError(patience)
		} else if err == nil && !f.Replica {
			err = errors.New("it is a master")
		}
		mu.Lock()
		defer mu.Unlock()
		found = append(found, Replica{c.Options().NodeAddress, f.Staleness, err})
		return nil
	})
	slices.SortFunc(found, func(a, b Replica) int { return cmp.Compare(a.Address, b.Address) })
	return found, err
}
