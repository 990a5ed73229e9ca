package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// Beside the progress of live events, each shard stores what a fill still has to apply of a partition. The scripts that
// move that progress write it: claim.lua sets the ranges' ends, and place.lua gives up ranges that can no longer be
// determined. The progress of the fill itself has the usual encoding, so apply.lua moves it with its writes.

//go:embed fill.lua
var fillLua string

//go:embed archive.lua
var archiveLua string

// awayLonger is how long a plan without a fill may have a partition before the fill is given up. It is less than
// garbageAfter, after which unused series are dropped.
const awayLonger = garbageAfter / 2

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
	var kept []*state.Fill
	for _, f := range known.Fills {
		if f.In(p) == state.KeptAll {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b *state.Fill) int { return cmp.Compare(a.ID, b.ID) })
	return kept, nil
}

// Fillings reads the progress of a fill for each partition, by shard.
func (s *Store) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	all := make([][]state.Filling, len(partitions))
	for i := range all {
		all[i] = make([]state.Filling, len(s.tags))
	}
	if len(partitions) == 0 {
		return all, nil
	}
	replies := askShards(ctx, s, s.masters.write, func(progress string) *redis.SliceCmd {
		args := []any{"hmget", progress}
		for _, p := range partitions {
			args = append(args, keyspace.RangeField(f, p), keyspace.PartitionField(f.Partition(p)))
		}
		return redis.NewSliceCmd(ctx, args...)
	})
	for shard, reply := range replies {
		values, err := reply.Result()
		if err != nil {
			return nil, fmt.Errorf("read what is filled: %w", err)
		}
		for i := range partitions {
			ranges, _ := values[2*i].(string)
			at, _ := values[2*i+1].(string)
			if all[i][shard], err = state.ParseFilling(ranges, at); err != nil {
				return nil, fmt.Errorf("%s: %w", keyspace.ProgressKey(s.tags[shard]), err)
			}
		}
	}
	return all, nil
}

// StartFill sets where the filling of partitions starts, in all shards in which that is not set. In the others it only
// raises the time since which they are covered.
func (s *Store) StartFill(ctx context.Context, starts ...state.FillStart) error {
	var calls progressCalls
	for shard, tag := range s.tags {
		var args []any
		for i := range starts {
			f := &starts[i]
			args = append(args, f.Fill.ID, f.Partition.Topic, f.Partition.ID, f.From, f.Since, f.Log)
		}
		calls.add(fillLua, shard, tag, args, -1, func([]any) error { return nil })
	}
	if err := calls.send(ctx, s); err != nil {
		return fmt.Errorf("record from where partitions are filled: %w", err)
	}
	return nil
}

// BeginArchives records in all shards the archives that a fill over a cut needs, all of the cut, and returns its
// positions in each archive, by shard.
func (s *Store) BeginArchives(ctx context.Context, f *state.Fill, archives []*state.Archive) ([][]state.Position, error) {
	known, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	before := f.Before(known.Fills)
	args := []any{f.Cut.ID(), f.ID, len(before)}
	for _, other := range before {
		args = append(args, other.ID)
	}
	var apart []any
	for id, other := range known.Fills {
		if !f.Shares(other) {
			apart = append(apart, id)
		}
	}
	args = append(append(args, len(apart)), apart...)
	positions := make([][]state.Position, len(archives))
	for i, a := range archives {
		args = append(args, a.ID, a.Rows(), a.Since)
		positions[i] = make([]state.Position, len(s.tags))
	}
	var calls progressCalls
	for shard, tag := range s.tags {
		calls.add(archiveLua, shard, tag, args, len(archives), func(reply []any) (err error) {
			for i := range archives {
				if positions[i][shard], err = parsePosition(reply[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := calls.send(ctx, s); err != nil {
		if strings.HasPrefix(err.Error(), "ARCHIVE ") {
			err = state.ErrLostArchive
		}
		return nil, fmt.Errorf("record which files are needed: %w", err)
	}
	return positions, nil
}

// archive is what shards know of an archive.
type archive struct{ rows, since int64 }

// archivesOf returns the archives of a cut that any shard knows, by ID.
func archivesOf(cut *state.Cut, shards []map[string]string) (map[string]archive, error) {
	known := map[string]archive{}
	for _, fields := range shards {
		for name, text := range fields {
			id, of := strings.CutPrefix(name, archivePrefix+cut.ID()+":")
			if !of {
				continue
			}
			rows, since, _ := strings.Cut(text, ";")
			var a archive
			var err, err2 error
			a.rows, err = strconv.ParseInt(rows, 10, 64)
			a.since, err2 = strconv.ParseInt(since, 10, 64)
			if cmp.Or(err, err2) != nil {
				return nil, fmt.Errorf("%q does not say how many rows an archive has, and since when", text)
			}
			known[id] = a
		}
	}
	return known, nil
}

// addArchives adds the progress of a fill over a cut in its archives.
func addArchives(e *state.FillEpoch, before []*state.Fill, shards []map[string]string) error {
	archives, err := archivesOf(e.Fill.Cut, shards)
	if err != nil {
		return err
	}
	e.Archived, e.ArchivedSince = len(archives) > 0, state.MaxTime
	for id, a := range archives {
		e.ArchivedSince = min(e.ArchivedSince, a.since)
		for _, fields := range shards {
			at, err := rowsOf(append([]*state.Fill{e.Fill}, before...), id, fields)
			if err != nil {
				return err
			}
			e.Broken = e.Broken || at.Log == state.Moved
			e.Archived = e.Archived && fields != nil && at.Offset >= a.rows && !e.Broken
			e.AddRows(at.Offset, a.rows)
		}
	}
	return nil
}

// rowsOf returns the position in an archive of the first fill that has one which is not moved, or else a moved one.
func rowsOf(fills []*state.Fill, archive string, fields map[string]string) (at state.Position, err error) {
	at = state.NoPosition
	for i, f := range fills {
		found, err := state.ParsePosition(fields[keyspace.PartitionField(state.ArchivePartition(f.ID, archive))])
		if err != nil {
			return at, err
		}
		if found.Exists() && (i == 0 || found.Log != state.Moved) {
			return found, nil
		}
		if found.Exists() {
			at = found
		}
	}
	return at, nil
}

// fillEpochs returns the progress of fills according to all shards.
func (s *Store) fillEpochs(ctx context.Context, shards []map[string]string, plans map[string]*state.Plan) ([]state.FillEpoch, error) {
	ids := map[string]bool{}
	for _, fields := range shards {
		for name := range fields {
			if rest, ok := strings.CutPrefix(name, "range:"); ok {
				id, _, _ := strings.Cut(rest, ":")
				ids[id] = true
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	fills, err := s.fillsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	var epochs []state.FillEpoch
	for _, f := range fills {
		before := f.Before(fills)
		whole := wholeIn(f, plans)
		for topic := range f.Columns {
			e := state.FillEpoch{Fill: f, Topic: topic, Whole: true, Since: state.MinTime}
			for _, fields := range shards {
				if err := addShard(&e, before, whole, fields); err != nil {
					return nil, err
				}
			}
			if f.Cut != nil {
				if err := addArchives(&e, before, shards); err != nil {
					return nil, err
				}
			}
			epochs = append(epochs, e)
		}
	}
	return epochs, nil
}

// wholeIn returns a function that reports whether the plan of a version is known to keep all of a fill.
func wholeIn(f *state.Fill, plans map[string]*state.Plan) func(version string) bool {
	known := map[string]bool{}
	return func(version string) bool {
		whole, found := known[version]
		if !found {
			whole = plans[version] != nil && f.In(plans[version]) == state.KeptAll
			known[version] = whole
		}
		return whole
	}
}

// addShard adds the progress of a shard to that of a fill, which continues those before. `whole` reports whether the plan of
// a version keeps all of the fill.
func addShard(e *state.FillEpoch, before []*state.Fill, whole func(version string) bool, fields map[string]string) error {
	if fields == nil {
		e.Whole = false // it has never answered
	}
	for name := range fields {
		under, id, isProgress := strings.Cut(name, "/")
		topic, version, _ := strings.Cut(under, "@")
		if !isProgress || topic != e.Topic {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is not a partition", name)
		}
		p := state.Partition{Topic: topic, ID: int32(n)}
		f, err := fillingOf(append([]*state.Fill{e.Fill}, before...), p, fields)
		if err != nil {
			return err
		}
		filled, all := f.Share()
		e.Whole, e.Since = e.Whole && f.Done(), max(e.Since, f.Since)
		e.Broken = e.Broken || f.Broken || !f.Known && whole(version)
		e.Filled, e.All, e.Opened = e.Filled+filled, e.All+all, max(e.Opened, f.Opened)
	}
	return nil
}

// fillingOf returns the progress of the first fill with which a plan has taken the partition, preferably of one that
// was not given up there.
func fillingOf(fills []*state.Fill, p state.Partition, fields map[string]string) (filling state.Filling, err error) {
	for _, of := range fills {
		found, err := state.ParseFilling(fields[keyspace.RangeField(of, p)], fields[keyspace.PartitionField(of.Partition(p))])
		switch {
		case err != nil:
			return filling, err
		case found.Known && !found.Broken:
			return found, nil
		case !filling.Known:
			filling = found
		}
	}
	return filling, nil
}

// claimArgs returns the arguments of claim.lua between the run of the server and the partitions.
func (s *Store) claimArgs(version string, givesWayTo []string) []any {
	args := []any{version, state.MaxAhead.Milliseconds(), len(givesWayTo)}
	for _, keeper := range givesWayTo {
		args = append(args, keeper)
	}
	args = append(args, awayLonger.Milliseconds())
	if fills, known := s.claimed.Load(version); known {
		return append(args, fills.([]any)...)
	}
	return append(args, 0)
}
