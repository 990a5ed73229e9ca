package redisstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/store"
)

// copiesEach is how often masters are asked about their replicas.
const copiesEach = 50 * time.Millisecond

// AwaitReplicas waits until the replicas of all masters, those of a cluster that are known but not connected included,
// have everything written so far, but no longer than within. A replica that replaces its master loses what it lacks. It
// fails if a master does not report its replicas.
func (s *Store) AwaitReplicas(ctx context.Context, within time.Duration) (found []store.Copies, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	masters, err := s.masters.all(ctx, s.tags)
	if err != nil {
		return nil, err
	}
	for _, m := range masters {
		c, err := m.copies(ctx)
		if err != nil {
			return nil, err
		}
		found = append(found, c)
	}
	return found, nil
}

// copies waits until the master's replicas have what the master has now, or until the context ends.
func (m *master) copies(ctx context.Context) (store.Copies, error) {
	goal := int64(-1)
	for {
		// A context that has ended still allows one request.
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.masters.write)
		text, err := m.node.Info(bounded, "replication").Result()
		cancel()
		if err != nil {
			return store.Copies{}, err
		}
		fields := infoFields(text)
		if goal < 0 {
			if goal, err = strconv.ParseInt(fields["master_repl_offset"], 10, 64); err != nil {
				return store.Copies{}, errors.New("INFO replication does not say how far the master is")
			}
		}
		c := copiesIn(fields, goal)
		c.Master = m.address
		if c.Known(m.knownReplicas(ctx)); c.Behind == 0 {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return c, nil
		case <-time.After(copiesEach):
		}
	}
}

// knownReplicas returns how many replicas of a cluster's master its nodes know, connected or not; 0 for others, whose
// masters know only the connected ones.
func (m *master) knownReplicas(ctx context.Context) (n int) {
	if m.masters.cluster == nil {
		return 0
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.masters.write)
	defer cancel()
	var own string
	var of []string // the masters of the replicas
	for line := range strings.Lines(m.node.ClusterNodes(bounded).Val()) {
		fields := strings.Fields(line)
		switch {
		case len(fields) < 4:
		case strings.HasPrefix(fields[2], "myself"):
			own = fields[0]
		case strings.Contains(fields[2], "slave"):
			of = append(of, fields[3])
		}
	}
	for _, id := range of {
		if id == own {
			n++
		}
	}
	return n
}

// copiesIn counts the replicas in INFO replication: slave0:ip=…,port=…,state=online,offset=1234,lag=0
func copiesIn(fields map[string]string, goal int64) (c store.Copies) {
	for name, text := range fields {
		if number, ok := strings.CutPrefix(name, "slave"); !ok || strings.Trim(number, "0123456789") != "" {
			continue
		}
		c.Replicas++
		_, rest, _ := strings.Cut(text, "offset=")
		digits, _, _ := strings.Cut(rest, ",")
		if at, err := strconv.ParseInt(digits, 10, 64); err != nil || at < goal || !strings.Contains(text, "state=online") {
			c.Behind++
		}
	}
	return c
}

// checkLongest bounds how long CheckReplicas waits for lagging replicas.
const checkLongest = 5 * time.Second

// Replica is a server that questions may be read from, and its state.
type Replica struct {
	Address   string
	Staleness time.Duration // upper bound; only if Err is nil
	Err       error         // why it is not read
}

// CheckReplicas asks all replicas that ReadReplica may read from whether they are usable, in the order of their
// addresses. A lagging replica has time until it would be too stale, but at most 5 seconds. watchReplicas need not run.
// It fails if the replicas are unknown.
func (s *Store) CheckReplicas(ctx context.Context) (found []Replica, err error) {
	s.lookAtMasters(ctx)
	watching, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { again(watching, s.lookAtMasters) })
	defer watch.Wait()
	defer cancel()
	var mu sync.Mutex // replicas are asked concurrently
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
		f, err := r.judge(ctx, c)
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
