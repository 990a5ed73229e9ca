package protocol

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// Protocol makes the steps of package progress for a store on an engine. It is safe for concurrent use.
type Protocol struct {
	engine  Engine
	shardOf func(entity string) int
	slack   time.Duration
	now     func() time.Time

	plans      cache[state.Plan]
	fills      cache[state.Fill]
	archives   cache[state.Archive]
	claimants  sync.Map // *progress.Claimant by version, of the registered plans
	past       past
	registered registrations
}

// New returns the protocol of an engine. shardOf returns the shard of an entity; state lives longer than it is kept by slack; now
// returns the time of this process, which may be zero if time goes by records only.
func New(e Engine, shardOf func(entity string) int, slack time.Duration, now func() time.Time) *Protocol {
	return &Protocol{engine: e, shardOf: shardOf, slack: slack, now: now}
}

// callPartitions is the most partitions that one change is about: it blocks others for a few milliseconds at most.
const callPartitions = 500

// maxRefusals is how often the record of many partitions together may change while they are claimed. After that each is claimed by
// itself, so that the claim succeeds while another plan applies records of all of them.
const maxRefusals = 3

// Claim takes partitions for a plan. It returns one claim for each partition. Shards whose server does not answer, or is another
// than the claimant has seen, while others can be claimed are missing in the claims.
func (p *Protocol) Claim(ctx context.Context, partitions []state.Partition, by state.Claimant) ([]state.Claim, error) {
	shards := p.allShards()
	claims := make([]state.Claim, len(partitions))
	for i := range claims {
		claims[i] = state.Claim{Progress: make([]state.Position, len(shards)), OwnedMs: math.MaxInt64}
	}
	if len(partitions) == 0 {
		return claims, nil
	}
	claimant := p.claimant(by)
	claimed := make([]int, len(shards)) // number of partitions, by shard
	s := step{
		shards: shards,
		runs:   by.Seen.Runs(len(shards)),
		decide: func(shard int, r *progress.Record, before int) (func() bool, error) {
			first, most := claimed[shard], callPartitions
			if before > maxRefusals {
				most = 1
			}
			some := r.Claim(partitions[first:min(first+most, len(partitions))], claimant)
			return func() bool {
				for i := range some {
					some[i].AddTo(&claims[first+i], shard)
				}
				claimed[shard] += len(some)
				return claimed[shard] < len(partitions)
			}, nil
		},
		missing: func(shard int, err error) {
			for i := range claims {
				claims[i].Miss(shard, err)
			}
		},
	}
	if err := s.make(ctx, p); err != nil {
		return nil, fmt.Errorf("claim %d partitions: %w", len(partitions), err)
	}
	return claims, nil
}

// claimant returns the claimant of a plan, with what was known when the plan was registered.
func (p *Protocol) claimant(by state.Claimant) *progress.Claimant {
	if known, registered := p.claimants.Load(by.Version); registered {
		return known.(*progress.Claimant).GivingWayTo(by.GivesWayTo)
	}
	return progress.NewClaimant(by.Version, by.GivesWayTo, &state.Known{})
}

// Progress reads each partition's position in each shard under any plan, in one round trip, and a second one if a partition is not
// under the plan that it is named with.
func (p *Protocol) Progress(ctx context.Context, partitions []state.Partition) ([][]state.Position, error) {
	all := make([][]state.Position, len(partitions))
	for i := range all {
		all[i] = make([]state.Position, p.engine.Shards())
	}
	err := p.positions(ctx, p.allShards(), partitions, func(partition, shard int, at state.Position) { all[partition][shard] = at })
	if err != nil {
		return nil, fmt.Errorf("read the progress of %d partitions: %w", len(partitions), err)
	}
	return all, nil
}

// positions reads the positions of partitions in some shards.
func (p *Protocol) positions(ctx context.Context, shards []int, partitions []state.Partition, take func(partition, shard int, at state.Position)) error {
	if len(partitions) == 0 || len(shards) == 0 {
		return nil
	}
	q := Query{Records: shards, For: ToReport}
	for _, partition := range partitions {
		q.Names = append(q.Names, progress.PositionField(partition))
	}
	var others []int           // shards in which another plan has a partition, or none
	lacking := map[int][]int{} // these partitions, by shard
	for n, found := range p.engine.Read(ctx, q) {
		shard := shards[n]
		if found.Err != nil {
			return found.Err
		}
		for i, name := range q.Names {
			at, err := state.ParsePosition(found.Fields[name])
			if err != nil {
				return fmt.Errorf("%s: %w", p.engine.Name(shard), err)
			}
			if at.Exists() {
				take(i, shard, at)
			} else {
				lacking[shard] = append(lacking[shard], i)
			}
		}
		if len(lacking[shard]) > 0 {
			others = append(others, shard)
		}
	}
	records, errs := p.read(ctx, Query{Records: others, For: ToReport})
	for n, shard := range others {
		if errs[n] != nil {
			return errs[n]
		}
		for _, i := range lacking[shard] {
			take(i, shard, records[n].Position(partitions[i]))
		}
	}
	return nil
}

// Applied reports whether the record at an offset of a partition is applied in all shards of the reads, or in all
// shards if there are no reads. The partition is named with a plan; if that plan does not have it, any plan counts. It
// writes nothing, and takes one round trip if the plan has the partition. In a shard whose server does not answer the
// record counts as not applied.
func (p *Protocol) Applied(ctx context.Context, partition state.Partition, offset int64, reads []state.Read) (bool, error) {
	concerned := make([]bool, p.engine.Shards())
	for i := range reads {
		concerned[p.shardOf(reads[i].Entity)] = true
	}
	name := progress.PositionField(partition)
	q := Query{Names: []string{name}, For: ToAnswer}
	for shard := range concerned {
		if concerned[shard] || len(reads) == 0 {
			q.Records = append(q.Records, shard)
		}
	}
	var others []int // shards in which another plan has the partition, or none
	for i, found := range p.engine.Read(ctx, q) {
		at, err := state.ParsePosition(found.Fields[name])
		switch {
		case errors.Is(found.Err, state.ErrUnavailable):
			return false, nil
		case found.Err != nil:
			return false, fmt.Errorf("read the progress of %v: %w", partition, found.Err)
		case err != nil:
			return false, fmt.Errorf("%s: %w", p.engine.Name(q.Records[i]), err)
		case !at.Exists():
			others = append(others, q.Records[i])
		case at.Offset <= offset:
			return false, nil
		}
	}
	applied := true
	err := p.positions(ctx, others, []state.Partition{partition}, func(_, _ int, at state.Position) { applied = applied && at.Offset > offset })
	if err != nil {
		return false, fmt.Errorf("read the progress of %v: %w", partition, err)
	}
	return applied, nil
}

// Log returns the log with the tag of a position; zero if no shard that answers knows it.
func (p *Protocol) Log(ctx context.Context, tag string) (state.LogID, error) {
	name := progress.LogField(tag)
	var missing error
	for _, found := range p.engine.Read(ctx, Query{Records: p.allShards(), Names: []string{name}, For: ToReport}) {
		if text := found.Fields[name]; text != "" {
			return state.ParseLogID(text), nil
		}
		if found.Err != nil {
			missing = found.Err
		}
	}
	if missing != nil {
		return state.LogID{}, fmt.Errorf("read what log %s is: %w", tag, missing)
	}
	return state.LogID{}, nil
}

// Place sets partitions' progress to where applying has not led it. It returns how many positions of shards it changed: fewer than
// requested if some were not as found before.
func (p *Protocol) Place(ctx context.Context, placements ...state.Placement) (placed int, err error) {
	stays := func(shard int) bool {
		return !slices.ContainsFunc(placements, func(w state.Placement) bool { return w.From[shard] != w.To[shard] })
	}
	s := step{
		shards: slices.DeleteFunc(p.allShards(), stays),
		begins: true,
		decide: func(shard int, r *progress.Record, _ int) (func() bool, error) {
			n := r.Place(shard, placements)
			return func() bool {
				placed += n
				return false
			}, nil
		},
	}
	if err := s.make(ctx, p); err != nil {
		return placed, fmt.Errorf("place %d partitions: %w", len(placements), err)
	}
	return placed, nil
}

// Gap records that records of a partition were skipped whose timestamps go up to a moment, in milliseconds, or to that of the newest
// record applied.
func (p *Protocol) Gap(ctx context.Context, partition state.Partition, until int64) error {
	if err := p.changeAll(ctx, func(r *progress.Record) { r.Gap(partition.Topic, until) }); err != nil {
		return fmt.Errorf("note a gap in %v: %w", partition, err)
	}
	return nil
}

// Noticed is what was noticed of the server of a shard; see progress.Record.Notice.
type Noticed struct {
	Server
	Ahead int64 // the greatest time, in ms, that its clock has shown, if it was set; else 0
}

// Notice records what was noticed of the servers of shards. noted is called for each shard in which that is recorded.
func (p *Protocol) Notice(ctx context.Context, of map[int]Noticed, noted func(shard int)) error {
	s := step{
		decide: func(shard int, r *progress.Record, _ int) (func() bool, error) {
			n := of[shard]
			r.Notice(n.Run, n.Evicted, n.Ahead)
			return func() bool {
				noted(shard)
				return false
			}, nil
		},
		missing: func(int, error) {}, // it is noticed again
	}
	for shard := range of {
		s.shards = append(s.shards, shard)
	}
	return s.make(ctx, p)
}

// ShardProgress reads the record of a shard.
func (p *Protocol) ShardProgress(ctx context.Context, shard int) (*progress.Record, error) {
	records, errs := p.read(ctx, Query{Records: []int{shard}, For: ToReport})
	return records[0], errs[0]
}
