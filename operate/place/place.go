// Package place sets the progress of partitions to an offset that an operator chooses, and first describes the effect.
package place

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Brokers look up the logs of partitions.
type Brokers interface {
	Logs(ctx context.Context, partitions []state.Partition) ([]fetch.Log, error)
}

// Target is where to place partitions.
type Target struct {
	end    bool
	offset int64 // negative for an end of the log
}

// ParseTarget reads "start", "end" or an offset.
func ParseTarget(text string) (Target, error) {
	switch text {
	case "start", "end":
		return Target{end: text == "end", offset: -1}, nil
	}
	offset, err := strconv.ParseInt(text, 10, 64)
	if err != nil || offset < 0 {
		return Target{}, fmt.Errorf("%q is neither start nor end nor an offset", text)
	}
	return Target{offset: offset}, nil
}

// in returns the position of the target in a log.
func (t Target) in(l *fetch.Log, tag string) state.Position {
	at := state.Position{Offset: t.offset, Epoch: l.LeaderEpoch, Log: tag}
	switch {
	case t.offset >= 0:
	case t.end:
		at.Offset = l.End
	default:
		at.Offset = l.Start
	}
	return at
}

// Placer computes the effect of placing partitions.
type Placer struct {
	Store   store.Progress
	Brokers Brokers
	Version string // of the plan for partitions that no plan has
	// Again also moves shards back that are past the target.
	Again bool
	Now   time.Time
}

// Step is the effect of placing one partition, in numbers of shards.
type Step struct {
	Partition state.Partition
	To        state.Position
	Log       fetch.Log
	// Was is the earlier log of the shards that adopt the current one.
	Was state.LogID
	// First shards have no progress yet, Adopting ones are in another log, Forward ones skip up to
	// Skipped offsets, Back ones apply up to Repeated offsets again, Following ones are there under a later leader than
	// the log's, Staying ones are left alone.
	First, Adopting, Forward, Back, Following, Staying int
	Skipped, Repeated                                  int64

	placement state.Placement
}

// Changes reports whether the step changes anything.
func (s *Step) Changes() bool { return s.changed() > 0 }

// changed returns how many shards the step changes.
func (s *Step) changed() int { return s.First + s.Adopting + s.Forward + s.Back + s.Following }

// Steps computes the steps; it writes nothing.
func (p *Placer) Steps(ctx context.Context, partitions []state.Partition, to Target) ([]Step, error) {
	underPlan := make([]state.Partition, len(partitions))
	for i, id := range partitions {
		underPlan[i] = id.WithPlan(p.Version)
	}
	progress, err := p.Store.Progress(ctx, underPlan)
	if err != nil {
		return nil, err
	}
	logs, err := p.Brokers.Logs(ctx, partitions)
	if err != nil {
		return nil, err
	}
	steps := make([]Step, len(partitions))
	for i, id := range partitions {
		if logs[i].Err != nil {
			return nil, logs[i].Err
		}
		names, err := p.names(ctx, progress[i])
		if err != nil {
			return nil, err
		}
		steps[i] = p.step(id, &logs[i], progress[i], names, to)
		if at := steps[i].To.Offset; at < logs[i].Start || at > logs[i].End {
			return nil, fmt.Errorf("offset %d is not in the log of %s/%d, which %s: give one from %d to %d, or start or end",
				at, id.Topic, id.ID, holds(&logs[i]), logs[i].Start, logs[i].End)
		}
	}
	return steps, nil
}

// names returns the logs that positions belong to, by tag.
func (p *Placer) names(ctx context.Context, progress []state.Position) (map[string]state.LogID, error) {
	names := map[string]state.LogID{}
	for _, at := range progress {
		if _, known := names[at.Log]; known || at.Log == "" {
			continue
		}
		id, err := p.Store.Log(ctx, at.Log)
		if err != nil {
			return nil, err
		}
		names[at.Log] = id
	}
	return names, nil
}

// step computes the step of one partition.
func (p *Placer) step(id state.Partition, log *fetch.Log, progress []state.Position, names map[string]state.LogID, to Target) Step {
	other := func(at state.Position) bool {
		was := names[at.Log]
		return at.Log != "" && at.Log != log.ID.Tag() && (was == (state.LogID{}) || was.Contradicts(log.ID))
	}
	name := log.ID // with everything ever known about it
	for _, at := range progress {
		if at.Exists() && !other(at) {
			name = name.With(names[at.Log])
		}
	}
	s := Step{Partition: id, Log: *log, To: to.in(log, name.Tag())}
	s.placement = state.Placement{
		Partition: id.WithPlan(p.Version), From: progress, To: make([]state.Position, len(progress)), Log: name, Partitions: log.Partitions,
	}
	for shard, at := range progress {
		next := &s.placement.To[shard]
		*next = s.To
		switch {
		case !at.Exists():
			s.First++
			s.Skipped = max(s.Skipped, s.To.Offset)
		case other(at):
			s.Adopting++
			s.Was = names[at.Log]
			s.Skipped = max(s.Skipped, s.To.Offset-log.Start)
		case at.Furthest() > s.To.Offset && p.Again:
			s.Back++
			s.Repeated = max(s.Repeated, at.Furthest()-s.To.Offset)
			s.Skipped = max(s.Skipped, s.To.Offset-at.Offset)
		case at.Offset < s.To.Offset:
			s.Forward++
			s.Skipped = max(s.Skipped, s.To.Offset-at.Offset)
			if at.Furthest() > s.To.Offset {
				*next = at.To(s.To.Offset) // some slices are further
				next.Log = s.To.Log
			}
		case p.Again && s.To.Epoch >= 0 && at.Epoch > s.To.Epoch:
			// It is at the target, and would wait for ever for that leader if the topic was created again and the brokers
			// do not report its ID, by which the new log would be known.
			s.Following++
		default:
			s.Staying++
			*next = at
		}
	}
	if s.Skipped > 0 || s.Adopting > 0 {
		s.placement.Gap = p.Now.UnixMilli()
	}
	return s
}

// Apply carries out the steps. It fails if progress has moved since they were computed; partitions that were already
// placed stay placed.
func Apply(ctx context.Context, progress store.Progress, steps []Step) error {
	var placements []state.Placement
	want := 0
	for i := range steps {
		if s := &steps[i]; s.Changes() {
			placements = append(placements, s.placement)
			want += s.changed()
		}
	}
	placed, err := progress.Place(ctx, placements...)
	if err != nil {
		return err
	}
	if placed < want {
		return fmt.Errorf("%d of %d positions of shards were placed, the others moved meanwhile: run it again, to see what is left", placed, want)
	}
	return nil
}
