package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/store/redis/keyspace"
)

// What a fill has to apply of a partition stands in each shard beside the progress of live
// events, and is written by the scripts that move that: claim.lua says up to where, and
// place.lua gives up what cannot be told any more. The progress of the fill itself has the
// form of any other, so apply.lua moves it with what it writes.

//go:embed fill.lua
var fillSource string

// awayLonger is how long a plan without a fill may have had a partition for the fill to go
// on: less than deadAfter, from which on what nobody uses is dropped.
const awayLonger = deadAfter / 2

func rangeField(f *state.Fill, p state.Partition) string {
	return "range:" + f.ID + ":" + p.Topic + "/" + strconv.Itoa(int(p.ID))
}

// Bind gives a plan, as definitions make it, the generations that it is to keep, and says
// what that rests on.
func (s *Store) Bind(ctx context.Context, p *state.Plan) (*state.Plan, *state.History, error) {
	plans, fills, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read what there is of a plan: %w", err)
	}
	history, err := s.History(ctx)
	if err != nil {
		return nil, nil, err
	}
	now, err := s.Clock(ctx)
	if err != nil {
		return nil, nil, err
	}
	return state.Bind(p, &state.Known{Plans: plans, Fills: fills, History: history, Now: now}), history, nil
}

// Fills are those of which a plan keeps all.
func (s *Store) Fills(ctx context.Context, p *state.Plan) ([]*state.Fill, error) {
	_, all, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	var kept []*state.Fill
	for _, f := range all {
		if f.In(p) == state.KeptAll {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b *state.Fill) int { return cmp.Compare(a.ID, b.ID) })
	return kept, nil
}

// Fillings reads for each partition, by shard, how far a fill is with it.
func (s *Store) Fillings(ctx context.Context, f *state.Fill, partitions []state.Partition) ([][]state.Filling, error) {
	all := make([][]state.Filling, len(partitions))
	for i := range all {
		all[i] = make([]state.Filling, len(s.tags))
	}
	if len(partitions) == 0 {
		return all, nil
	}
	replies, commands := make([]*redis.SliceCmd, len(s.tags)), make([]redis.Cmder, len(s.tags))
	for shard, tag := range s.tags {
		args := []any{"hmget", keyspace.ProgressKey(tag)}
		for _, p := range partitions {
			args = append(args, rangeField(f, p), keyspace.PartitionField(f.Partition(p)))
		}
		replies[shard] = redis.NewSliceCmd(ctx, args...)
		commands[shard] = replies[shard]
	}
	s.send(ctx, s.masters.write, commands, func(i int) int { return i })
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

// StartFill says from where partitions are filled, in all shards where that was not said
// before. Where it was, it raises the moment from which on they are covered.
func (s *Store) StartFill(ctx context.Context, starts ...state.FillStart) error {
	var calls progressCalls
	for shard, tag := range s.tags {
		var args []any
		for i := range starts {
			f := &starts[i]
			args = append(args, f.Fill.ID, f.Partition.Topic, f.Partition.ID, f.From, f.Since, f.Log)
		}
		calls.add(fillSource, shard, tag, args, -1, func([]any) error { return nil })
	}
	if err := calls.send(ctx, s); err != nil {
		return fmt.Errorf("say from where partitions are filled: %w", err)
	}
	return nil
}

// fillsOf are those of the fills that are known.
func (s *Store) fillsOf(ctx context.Context, ids map[string]bool) (map[string]*state.Fill, error) {
	s.fills.mu.Lock()
	defer s.fills.mu.Unlock()
	fills := map[string]*state.Fill{}
	var missing []string
	for id := range ids {
		if f := s.fills.fills[id]; f != nil {
			fills[id] = f
		} else {
			missing = append(missing, fillPrefix+id)
		}
	}
	if len(missing) == 0 {
		return fills, nil
	}
	texts, err := s.planTexts(ctx, missing)
	if errors.Is(err, state.ErrUnavailable) {
		return fills, nil // what is not known is not filled
	}
	if err != nil {
		return nil, fmt.Errorf("read what is to be filled: %w", err)
	}
	if s.fills.fills == nil {
		s.fills.fills = map[string]*state.Fill{}
	}
	for i, name := range missing {
		text, ok := texts[i].(string)
		if !ok {
			continue
		}
		f := &state.Fill{ID: strings.TrimPrefix(name, fillPrefix)}
		if err := json.Unmarshal([]byte(text), f); err != nil {
			return nil, fmt.Errorf("read the fill %s: %w", f.ID, err)
		}
		s.fills.fills[f.ID], fills[f.ID] = f, f
	}
	return fills, nil
}

// fillEpochs is how far fills are, by what the progress of all shards says.
func (s *Store) fillEpochs(ctx context.Context, shards []map[string]string) ([]state.FillEpoch, error) {
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
		for topic := range f.Columns {
			e := state.FillEpoch{Fill: f, Topic: topic, Whole: true, Since: state.MinTime}
			for _, fields := range shards {
				if err := addShard(&e, fields); err != nil {
					return nil, err
				}
			}
			epochs = append(epochs, e)
		}
	}
	return epochs, nil
}

// addShard adds what the progress of a shard says of a fill.
func addShard(e *state.FillEpoch, fields map[string]string) error {
	if fields == nil {
		e.Whole = false // it has never answered
	}
	for name := range fields {
		under, id, isProgress := strings.Cut(name, "/")
		topic, _, _ := strings.Cut(under, "@")
		if !isProgress || topic != e.Topic {
			continue
		}
		n, err := strconv.ParseInt(id, 10, 32)
		if err != nil {
			return fmt.Errorf("%q is no partition", name)
		}
		p := state.Partition{Topic: topic, ID: int32(n)}
		f, err := fillingOf(e.Fill, p, fields)
		if err != nil {
			return err
		}
		filled, all := f.Share()
		e.Whole, e.Broken, e.Since = e.Whole && f.Done(), e.Broken || f.Broken, max(e.Since, f.Since)
		e.Filled, e.All = e.Filled+filled, e.All+all
	}
	return nil
}

// fillingOf is how far a fill is with a partition, or where no plan with it has taken that, how far
// those are that it goes on with.
func fillingOf(f *state.Fill, p state.Partition, fields map[string]string) (filling state.Filling, err error) {
	for _, id := range append([]string{f.ID}, f.After...) {
		of := &state.Fill{ID: id}
		filling, err = state.ParseFilling(fields[rangeField(of, p)], fields[keyspace.PartitionField(of.Partition(p))])
		if err != nil || filling.Known {
			break
		}
	}
	return filling, err
}

// claimArgs begin the arguments of claim.lua.
func (s *Store) claimArgs(version string, givesWayTo []string) []any {
	args := []any{version, state.MaxAhead.Milliseconds(), len(givesWayTo)}
	for _, keeper := range givesWayTo {
		args = append(args, keeper)
	}
	args = append(args, awayLonger.Milliseconds())
	if fills, known := s.planned.Load(version); known {
		return append(args, fills.([]any)...)
	}
	return append(args, 0)
}
