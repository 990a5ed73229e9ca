package recovery

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/pipeline/fetch"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store"
)

// Brokers are the requests to Kafka.
type Brokers interface {
	Logs(ctx context.Context, partitions []state.Partition) ([]fetch.Log, error)
	EpochEnds(ctx context.Context, queries []fetch.EpochQuery) []fetch.EpochEnd
	Earlier(ctx context.Context, partitions []state.Partition, logs []fetch.Log, asked []fetch.Before) []int64
}

// Metrics count records, by topic.
type Metrics struct {
	Lost     *prometheus.CounterVec // not applied, and no longer in the log
	Vanished *prometheus.CounterVec // applied, and no longer in a log that was truncated
}

// Resumer finds where to read partitions from.
type Resumer struct {
	Rules   Rules
	Store   store.Store
	Brokers Brokers
	Plan    *state.Plan // the plan to apply
	Streams []*record.Stream
	// Register registers the plan with the store, and returns the rivals to which it gives way, and the history on which the plan was
	// bound.
	Register func(context.Context) ([]state.Rival, *state.History, error)
	Metrics  Metrics
	Log      *slog.Logger
}

// Resumption says how a partition continues: from its progress, or not before some time, or not at all for now.
type Resumption struct {
	Progress []state.Position // by shard
	Lagging  []bool           // by shard, those that could not be claimed
	Why      error            // why they could not be claimed; nil if all were
	Known    fetch.Known      // the lowest
	// From is the offset from which records are read that are only remembered, see record.Earlier: at most that of Known.
	From  int64
	log   fetch.Log
	First *state.Claim  // the progress as first found, before any placement; nil if it was not found
	Early time.Duration // how long to wait before it may be read; see Rules.GracePeriod
	Seal  state.Seal    // of the store
	Err   error         // why it does not go on
}

// looks bounds the checks. Each may require another one: after a first position, after a truncation, and after a loss.
const looks = 5

var errChanging = errors.New("its progress changes while it is looked at")

// Resume claims partitions and finds the lowest progress of all shards. For any number of partitions it needs one
// pipeline to the store and a few requests to each leader. Each partition continues or fails by itself.
func (r *Resumer) Resume(ctx context.Context, partitions []state.Partition) []Resumption {
	done := make([]Resumption, len(partitions))
	pending := make([]int, len(partitions))
	for i := range pending {
		pending[i] = i
		done[i].Err = errChanging
	}
	for range looks {
		if len(pending) == 0 {
			break
		}
		again, err := r.round(ctx, partitions, pending, done)
		if err != nil {
			for _, i := range pending {
				done[i].Err = err
			}
			break
		}
		pending = again
	}
	r.lookBack(ctx, partitions, done)
	return done
}

// lookBack finds from where partitions are read.
func (r *Resumer) lookBack(ctx context.Context, partitions []state.Partition, done []Resumption) {
	logs, asked := make([]fetch.Log, len(done)), make([]fetch.Before, len(done))
	for i := range done {
		d := &done[i]
		logs[i], asked[i] = d.log, fetch.Before{Offset: d.Known.Offset, Most: record.MaxEarlier}
		if d.Err == nil && d.Early == 0 {
			asked[i].Reach = record.Reach(r.Streams, partitions[i].Topic)
		}
	}
	for i, from := range r.Brokers.Earlier(ctx, partitions, logs, asked) {
		if done[i].From = from; done[i].Err == nil {
			done[i].Err = logs[i].Err
		}
	}
}

// round checks partitions once. It returns those that were placed and must be checked again.
func (r *Resumer) round(ctx context.Context, partitions []state.Partition, pending []int, done []Resumption) (again []int, err error) {
	findings, err := r.find(ctx, partitions, pending)
	if err != nil {
		return nil, err
	}
	var placements []state.Placement
	verdicts := map[int]verdict{}
	history := sync.OnceValues(func() (*state.History, error) { return r.Store.History(ctx) })
	for n, i := range pending {
		if done[i].First == nil {
			done[i].First = &findings[n].claim
		}
		v := findings[n].judge(r.Rules)
		switch {
		case v.err != nil:
			done[i].Err = v.err
		case v.placement != nil:
			again = append(again, i)
			placements = append(placements, *v.placement)
			verdicts[i] = v
		default:
			done[i] = ready(&findings[n], done[i].First)
			if done[i].Early, err = r.early(history, partitions[i].Topic, findings[n].claim.OwnedMs); err != nil {
				return nil, err
			}
		}
	}
	if len(placements) == 0 {
		return nil, nil
	}
	if _, err := r.Store.Place(ctx, placements...); err != nil {
		return nil, err
	}
	for _, i := range again {
		r.report(partitions[i], verdicts[i])
	}
	return again, nil
}

// ready lets a partition continue from its lowest progress. Shards that could not be claimed lag: they are claimed when
// the partition is read again for them.
func ready(f *finding, first *state.Claim) Resumption {
	r := Resumption{log: f.log, Seal: f.seal, First: first, Progress: f.claim.Progress, Lagging: make([]bool, len(f.claim.Progress))}
	for shard := range r.Lagging {
		if err := f.claim.Misses(shard); err != nil {
			r.Lagging[shard], r.Why = true, err
		}
	}
	lowest := slices.MinFunc(f.claim.Known(), func(a, b state.Position) int { return cmp.Compare(a.Offset, b.Offset) })
	furthest := slices.MaxFunc(f.claim.Known(), func(a, b state.Position) int { return cmp.Compare(a.Furthest(), b.Furthest()) })
	r.Known = fetch.Known{
		Offset: lowest.Offset, Epoch: lowest.Epoch, LeaderEpoch: f.log.LeaderEpoch, Log: f.log.ID,
		Applied: furthest.Furthest(), AppliedEpoch: furthest.Epoch,
	}
	return r
}

// find claims partitions, and reads everything needed to judge them.
func (r *Resumer) find(ctx context.Context, partitions []state.Partition, pending []int) ([]finding, error) {
	if err := r.Store.Create(ctx); err != nil {
		return nil, err
	}
	seal, err := r.Store.Seal(ctx)
	if err != nil {
		return nil, err
	}
	rivals, seen, err := r.Register(ctx)
	if err != nil {
		return nil, err
	}
	claimant := state.Claimant{Version: r.Plan.Version, Seen: seen}
	for i := range rivals {
		claimant.GivesWayTo = append(claimant.GivesWayTo, rivals[i].Version)
	}
	ids := make([]state.Partition, len(pending))
	for n, i := range pending {
		ids[n] = partitions[i]
	}
	claims, err := r.Store.Claim(ctx, ids, claimant)
	if err != nil {
		return nil, err
	}
	logs, err := r.Brokers.Logs(ctx, ids)
	if err != nil {
		return nil, err
	}
	findings, now := make([]finding, len(pending)), time.Now().UnixMilli()
	for n := range pending {
		findings[n] = finding{partition: ids[n], seal: seal, underPlan: ids[n].WithPlan(r.Plan.Version), claim: claims[n], rivals: rivals, log: logs[n], ends: map[int32]fetch.EpochEnd{}, now: now}
	}
	if err := r.findLogs(ctx, findings); err != nil {
		return nil, err
	}
	r.findEnds(ctx, findings)
	return findings, nil
}

// findLogs reads the logs of tags that are not those of the current logs.
func (r *Resumer) findLogs(ctx context.Context, findings []finding) error {
	logs := map[string]state.LogID{}
	for n := range findings {
		f := &findings[n]
		f.logs = logs
		tags := map[string]bool{}
		for _, at := range f.claim.Progress {
			tags[at.Log] = true
		}
		if f.claim.Topic != nil {
			tags[f.claim.Topic.Log] = true
		}
		delete(tags, "")
		delete(tags, f.log.ID.Tag())
		for tag := range tags {
			if _, known := logs[tag]; known {
				continue
			}
			was, err := r.Store.Log(ctx, tag)
			if err != nil {
				return err
			}
			logs[tag] = was
		}
	}
	return nil
}

// findEnds asks where the epochs of the applied records end.
func (r *Resumer) findEnds(ctx context.Context, findings []finding) {
	var queries []fetch.EpochQuery
	var of []*finding
	for n := range findings {
		f := &findings[n]
		if f.log.Err != nil {
			continue
		}
		epochs := map[int32]bool{}
		for _, at := range f.claim.Progress {
			if at.Epoch >= 0 {
				epochs[at.Epoch] = true
			}
		}
		for _, epoch := range slices.Sorted(maps.Keys(epochs)) {
			queries = append(queries, fetch.EpochQuery{Partition: f.partition, Leader: f.log.Leader, LeaderEpoch: f.log.LeaderEpoch, Epoch: epoch})
			of = append(of, f)
		}
	}
	if len(queries) == 0 {
		return
	}
	for i, end := range r.Brokers.EpochEnds(ctx, queries) {
		of[i].ends[queries[i].Epoch] = end
	}
}

// early returns how long to wait before the plan may be applied to a partition that it has had for some milliseconds.
// For a moment questions may use an old history, in which features that this plan does not keep still receive all
// events, or no records were skipped. The history is read only if the answer depends on it.
func (r *Resumer) early(read func() (*state.History, error), topic string, ownedMs int64) (time.Duration, error) {
	owned := time.Duration(min(ownedMs, math.MaxInt64/int64(time.Millisecond))) * time.Millisecond
	if owned >= r.Rules.GracePeriod {
		return 0, nil
	}
	history, err := read()
	if err != nil {
		return 0, err
	}
	outdated := slices.ContainsFunc(history.PlanEpochs, func(e state.PlanEpoch) bool { return e.Topic == topic && e.Version == state.Gap })
	for _, plan := range history.Plans {
		outdated = outdated || !r.Plan.Covers(plan)
	}
	if !outdated {
		return 0, nil
	}
	return r.Rules.GracePeriod - owned, nil
}

// report counts and logs the records that a partition skips.
func (r *Resumer) report(p state.Partition, v verdict) {
	log := r.Log.With("topic", p.Topic, "partition", p.ID)
	if v.lost != nil {
		r.Metrics.Lost.WithLabelValues(p.Topic).Add(float64(v.lost.From - v.lost.Progress))
		log.Error("records are lost, going on without them", "from", v.lost.Progress, "to", v.lost.From-1)
	}
	if v.vanished > 0 {
		r.Metrics.Vanished.WithLabelValues(p.Topic).Add(float64(v.vanished))
		log.Error("the log was truncated: records that were applied have vanished from it; going on where it diverges, the state keeps them",
			"vanished", v.vanished, "offset", state.Lowest(v.placement.To), "applied", state.Highest(v.placement.From))
	}
}
