package redisstore

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/store"
)

// copiesEach is how often masters are asked about their replicas.
const copiesEach = 50 * time.Millisecond

// AwaitReplicas waits until the replicas of all masters have everything written so far, at most for
// within; what a replica lacks is lost if it replaces its master. It fails if a master does not
// report it.
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

// copies waits until the master's replicas have what the master has now, or the context ends.
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
		if c.Behind == 0 {
			return c, nil
		}
		select {
		case <-ctx.Done():
			return c, nil
		case <-time.After(copiesEach):
		}
	}
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
