package redisstore

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// Bind adds the generations to keep to a plan that definitions made. It also returns the history on which it decided.
func (s *Store) Bind(ctx context.Context, p *state.Plan) (*state.Plan, *state.History, error) {
	known, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the plans of the namespace: %w", err)
	}
	if known.History, err = s.historyOfServers(ctx); err != nil {
		return nil, nil, err
	}
	if known.Now, err = s.Clock(ctx); err != nil {
		return nil, nil, err
	}
	return state.Bind(p, &known), known.History, nil
}

// Fills returns the fills that a plan keeps completely.
func (s *Store) Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error) {
	known, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	return p.Keeps(known.Fills), nil
}

// Fillings reads the progress of a fill for each partition, by shard.
func (s *Store) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	all := make([][]state.Filling, len(partitions))
	if len(partitions) == 0 {
		return all, nil
	}
	records, errs := s.readRecords(ctx, s.masters.write, s.allShards())
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("read what is filled: %w", err)
	}
	for i, p := range partitions {
		for _, r := range records {
			all[i] = append(all[i], r.Filling(f, p))
		}
	}
	return all, nil
}

// StartFill sets where the filling of partitions starts, in all shards in which that is not set. In the others it only
// raises the time since which they are covered.
func (s *Store) StartFill(ctx context.Context, starts ...state.FillStart) error {
	err := s.changeAll(ctx, func(r *progress.Record) { r.StartFill(starts) })
	if err != nil {
		return fmt.Errorf("record from where partitions are filled: %w", err)
	}
	return nil
}

// changeAll makes a step in all shards.
func (s *Store) changeAll(ctx context.Context, step func(*progress.Record)) error {
	c := change{shards: s.allShards(), decide: func(_ int, r *progress.Record, _ int) (func() bool, error) {
		step(r)
		return func() bool { return false }, nil
	}}
	return c.make(ctx, s)
}

// BeginArchives records in all shards the archives that a fill over a cut needs, all of the cut, and returns its
// positions in each archive, by shard.
func (s *Store) BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	known, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	positions := make([][]state.Position, len(archives))
	for i := range archives {
		positions[i] = make([]state.Position, len(s.tags))
	}
	c := change{shards: s.allShards(), begins: true, decide: func(shard int, r *progress.Record, _ int) (func() bool, error) {
		begun, err := r.BeginArchives(f, known.Fills, archives)
		return func() bool {
			for i, at := range begun {
				positions[i][shard] = at
			}
			return false
		}, err
	}}
	if err := c.make(ctx, s); err != nil {
		return nil, fmt.Errorf("record which files are needed: %w", err)
	}
	return positions, nil
}
