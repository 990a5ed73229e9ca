package values

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
)

// Read answers all reads.
func (s *Store) Read(ctx context.Context, reads []state.Read) ([]state.WindowState, error) {
	return s.ReadOverlay(ctx, reads, nil)
}

// lookup is the reads of one value: with pending events, or as it is stored.
type lookup struct {
	key    Key
	stored bool
	reads  []int
}

// series returns the series that are looked up, in the order of the reads.
func (l *lookup) series(reads []state.Read) []*state.Series {
	series := make([]*state.Series, len(l.reads))
	for i, r := range l.reads {
		series[i] = reads[r].Series
	}
	return series
}

// lookups groups reads by what they read.
func (s *Store) lookups(reads []state.Read) (list []lookup) {
	type named struct {
		group, entity string
		stored        bool
	}
	index := map[named]int{}
	for i := range reads {
		r := &reads[i]
		n := named{r.Series.Group, r.Entity, r.Stored}
		at, known := index[n]
		if !known {
			at = len(list)
			index[n] = at
			list = append(list, lookup{key: s.keyOf(n.group, n.entity), stored: r.Stored})
		}
		list[at].reads = append(list[at].reads, i)
	}
	return list
}

// ReadOverlay answers all reads as if a batch had just been applied.
func (s *Store) ReadOverlay(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, error) {
	secret, err := s.secretFor(ctx)
	if err != nil {
		return nil, fmt.Errorf("read features: %w", err)
	}
	list := s.lookups(reads)
	answers := make([]state.WindowState, len(reads))
	missing := 0
	for n, held := range s.read(ctx, list) {
		l := &list[n]
		if errors.Is(held.Err, state.ErrUnavailable) {
			missing++
		} else if held.Err != nil {
			return nil, fmt.Errorf("read features: %w", held.Err)
		}
		v := s.view(secret, l.key, held, l.series(reads))
		if pending != nil && !l.stored {
			v.Overlay(pending, l.key.Entity, s.view(secret, l.key, held, packed.IDSeries(nil, pending, l.key.Group, l.key.Entity)))
		}
		for _, r := range l.reads {
			v.Read(v.Index(reads[r].Series), &reads[r], &answers[r])
		}
	}
	if missing > 0 && missing == len(list) {
		if err := s.engine.Down(); err != nil { // else others than these could be read
			return nil, fmt.Errorf("read features: %w", err)
		}
	}
	return answers, nil
}

// read reads what lookups need.
func (s *Store) read(ctx context.Context, list []lookup) []Value {
	if len(list) == 0 {
		return nil
	}
	keys := make([]Key, len(list))
	for i := range list {
		keys[i] = list[i].key
	}
	return s.engine.Read(ctx, keys)
}

// ReadReplica is ReadOverlay: an engine may read copies only where they have all that was written.
func (s *Store) ReadReplica(ctx context.Context, reads []state.Read, pending *state.Batch) ([]state.WindowState, state.Freshness, error) {
	answers, err := s.ReadOverlay(ctx, reads, pending)
	return answers, state.Freshness{}, err
}

// Recycle does nothing.
func (s *Store) Recycle([]state.WindowState) {}

// Snapshot reads the states of the reads into memory.
func (s *Store) Snapshot(ctx context.Context, reads []state.Read) (state.Snapshot, error) {
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	return packed.NewSnapshot(ctx, func(ctx context.Context, reads []state.Read, add func(group, entity string, v *packed.View)) error {
		list := s.lookups(reads)
		for n, held := range s.read(ctx, list) {
			if held.Err != nil {
				return fmt.Errorf("read features: %w", held.Err)
			}
			l := &list[n]
			add(l.key.Group, l.key.Entity, s.view(secret, l.key, held, l.series(reads)))
		}
		return nil
	}, reads)
}

// Inspect reads the state of an entity in the group of a series, unchanged. It does not know how much longer that is kept.
func (s *Store) Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error) {
	k := s.keyOf(series.Group, entity)
	h := packed.Held{Shard: k.Shard, TimeToLive: packed.UnknownTime}
	held := s.engine.Read(ctx, []Key{k})[0]
	if held.Err != nil || held.Bytes == nil {
		return h, held.Err
	}
	var err error
	if _, h.Packed, err = s.openOf(k, held.Bytes); err != nil {
		h.Type, h.Packed = "value", nil
	}
	return h, nil
}
