package redisstore

import (
	"cmp"
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// share is what one master is asked for a question.
type share struct {
	master   *master
	commands []redis.Cmder
	gathered
}

// shareByMaster makes the commands of lookups, by the master that holds the key.
func (s *Store) shareByMaster(ctx context.Context, lookups []lookup, pending *state.Batch) (shares []share) {
	for i := range lookups {
		l := &lookups[i]
		if pending != nil {
			s.remember(l, pending)
		}
		m, err := s.masters.of(ctx, l.key)
		if err != nil {
			l.lost = err
			continue
		}
		at := 0
		for at < len(shares) && shares[at].master != m {
			at++
		}
		if at == len(shares) {
			shares = append(shares, share{master: m, commands: make([]redis.Cmder, 0, len(lookups)-i)})
		}
		shares[at].commands = l.ask(ctx, shares[at].commands)
	}
	return shares
}

// err is why the keys were not read; nil where they were, whatever they hold.
func (l *lookup) err() error {
	err := l.lost
	switch {
	case err != nil:
	case l.held != nil:
		err = l.held.Err()
	default:
		err = cmp.Or(l.both.Err(), l.lengths[0].Err(), l.lengths[1].Err())
	}
	if errors.Is(err, redis.Nil) || keyspace.Foreign(err) {
		return nil
	}
	return err
}

// unread tells the slices of what was not read, because its master did not answer.
// The error is why a question cannot be answered even in part.
func (s *Store) unread(ctx context.Context, lookups []lookup, slices []state.WindowState) error {
	missing := 0
	for i := range lookups {
		switch err := lookups[i].err(); {
		case errors.Is(err, state.ErrUnavailable):
			missing++
			for _, r := range lookups[i].reads {
				slices[r].Err = err
			}
		case err != nil:
			return err
		}
	}
	if missing > 0 && missing == len(lookups) {
		return s.down(ctx)
	}
	return nil
}
