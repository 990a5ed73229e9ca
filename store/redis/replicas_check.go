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

// checkLongest bounds how long CheckReplicas waits for lagging replicas.
const checkLongest = 5 * time.Second

// Replica is a server that questions may be read from, and its state.
type Replica struct {
	Address   string
	Staleness time.Duration // upper bound; only if Err is nil
	Err       error         // why it is not read
}

// CheckReplicas asks all replicas that ReadReplica may read from whether they are usable, in the
// order of their addresses. Lagging ones have until they would be too stale, but at most 5 seconds.
// WatchReplicas need not run. It fails if the replicas are unknown.
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

// check asks a replica, a lagging one repeatedly.
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
