package protocol

import (
	"cmp"
	"context"
	"fmt"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// Bind adds the generations to keep to a plan that definitions made. It also returns the history on which it decided.
func (p *Protocol) Bind(ctx context.Context, plan *state.Plan) (*state.Plan, *state.History, error) {
	known, err := p.Known(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the plans of the namespace: %w", err)
	}
	if known.History, err = p.historyOfServers(ctx); err != nil {
		return nil, nil, err
	}
	if known.Now, err = p.Clock(ctx); err != nil {
		return nil, nil, err
	}
	return state.Bind(plan, known), known.History, nil
}

// Fills returns the fills that a plan keeps completely.
func (p *Protocol) Fills(ctx context.Context, plan *state.Plan) ([]*state.Fill, error) {
	known, err := p.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	return plan.Keeps(known.Fills), nil
}

// Fillings reads the progress of a fill for each partition, by shard.
func (p *Protocol) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	all := make([][]state.Filling, len(partitions))
	if len(partitions) == 0 {
		return all, nil
	}
	records, errs := p.read(ctx, Query{Records: p.allShards(), For: ToReport})
	if err := cmp.Or(errs...); err != nil {
		return nil, fmt.Errorf("read what is filled: %w", err)
	}
	for i, partition := range partitions {
		for _, r := range records {
			all[i] = append(all[i], r.Filling(f, partition))
		}
	}
	return all, nil
}

// StartFill sets where the filling of partitions starts, in all shards in which that is not set. In the others it only
// raises the time since which they are covered.
func (p *Protocol) StartFill(ctx context.Context, starts ...state.FillStart) error {
	if err := p.changeAll(ctx, func(r *progress.Record) { r.StartFill(starts) }); err != nil {
		return fmt.Errorf("record from where partitions are filled: %w", err)
	}
	return nil
}

// BeginArchives records in all shards the archives that a fill over a cut needs, all of the cut, and returns its
// positions in each archive, by shard.
func (p *Protocol) BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	known, err := p.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	positions := make([][]state.Position, len(archives))
	for i := range archives {
		positions[i] = make([]state.Position, p.engine.Shards())
	}
	s := step{shards: p.allShards(), begins: true, decide: func(shard int, r *progress.Record, _ int) (func() bool, error) {
		begun, err := r.BeginArchives(f, known.Fills, archives)
		return func() bool {
			for i, at := range begun {
				positions[i][shard] = at
			}
			return false
		}, err
	}}
	if err := s.make(ctx, p); err != nil {
		return nil, fmt.Errorf("record which files are needed: %w", err)
	}
	return positions, nil
}
