package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

//go:embed plan.lua
var planSource string

// fillPrefix begins the fields of the plans that say what is to be filled: the ID of a fill
// follows, and the value is a state.Fill as JSON.
const fillPrefix = "fill:"

// notePlan adds the plan and what it has to fill, where that is not there yet, and finds what
// is to be filled.
func (s *Store) notePlan(ctx context.Context, p *state.Plan) error {
	for {
		plans, fills, fields, err := s.allPlans(ctx)
		if err != nil {
			return err
		}
		fresh := newFills(p, plans, fills)
		if plans[p.Version] != nil && len(fresh) == 0 {
			s.planned.Store(p.Version, claimFills(p, plans, fills))
			return nil
		}
		if err := s.addPlan(ctx, p, fresh, fields); err != nil {
			return err
		}
	}
}

// newFills are those that a plan brings: of what nobody had before, and of the parts of others
// that it keeps.
func newFills(p *state.Plan, plans map[string]*state.Plan, fills map[string]*state.Fill) (fresh []*state.Fill) {
	if f := state.NewFill(p, slices.Collect(maps.Values(plans))); f != nil {
		fresh = append(fresh, f)
	}
	for _, f := range fills {
		if part := f.Part(p); part != nil && fills[part.ID] == nil {
			fresh = append(fresh, part)
		}
	}
	return fresh
}

// addPlan adds a plan and fills beside the others there are, unless there are more by now.
func (s *Store) addPlan(ctx context.Context, p *state.Plan, fills []*state.Fill, fields int) error {
	text, err := json.Marshal(p)
	if err != nil {
		return err
	}
	key := plansKey(s.namespace)
	args := []any{"eval", planSource, 1, key, fields, p.Version, text}
	for _, f := range fills {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		args = append(args, f.ID, text)
	}
	command := redis.NewCmd(ctx, args...)
	command.SetFirstKeyPos(3)
	return s.sendAbout(ctx, key, command)
}

// allPlans reads the plans that the namespace was ever written by and what they have to
// fill, by version, and how many fields these are.
func (s *Store) allPlans(ctx context.Context) (plans map[string]*state.Plan, fills map[string]*state.Fill, fields int, err error) {
	names := redis.NewStringSliceCmd(ctx, "hkeys", plansKey(s.namespace))
	if err := s.sendAbout(ctx, plansKey(s.namespace), names); err != nil {
		return nil, nil, 0, err
	}
	versions, ids := map[string]bool{}, map[string]bool{}
	for _, name := range names.Val() {
		if id, isFill := strings.CutPrefix(name, fillPrefix); isFill {
			ids[id] = true
		} else {
			versions[name] = true
		}
	}
	if plans, err = s.plansOf(ctx, versions); err != nil {
		return nil, nil, 0, err
	}
	fills, err = s.fillsOf(ctx, ids)
	if err == nil && len(plans)+len(fills) < len(names.Val()) {
		err = fmt.Errorf("read the plans: %w", state.ErrUnavailable)
	}
	return plans, fills, len(names.Val()), err
}

// claimFills is what claim.lua is told of fills by who claims for a plan: those that go on
// with others behind these.
func claimFills(p *state.Plan, plans map[string]*state.Plan, fills map[string]*state.Fill) []any {
	args := []any{len(fills)}
	for _, f := range slices.SortedFunc(maps.Values(fills), func(a, b *state.Fill) int {
		return cmp.Or(cmp.Compare(len(a.After), len(b.After)), cmp.Compare(a.ID, b.ID))
	}) {
		part := ""
		if goesOn := f.Part(p); goesOn != nil {
			part = goesOn.ID
		}
		args = append(args, f.ID, [...]string{state.KeptNone: "none", state.KeptPart: "part", state.KeptAll: "all"}[f.In(p)], part, len(f.Columns))
		for topic := range f.Columns {
			args = append(args, topic)
		}
		var free []any
		for version, other := range plans {
			if f.In(other) == state.KeptNone {
				free = append(free, version)
			}
		}
		args = append(append(args, len(free)), free...)
	}
	return args
}
