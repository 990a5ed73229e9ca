package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	_ "embed"

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
)

//go:embed plan.lua
var planLua string

// fillPrefix begins the fields of the plans that hold fills: the ID of a fill follows, and the value is a state.Fill as
// JSON. archivePrefix does the same for archives.
const (
	fillPrefix    = "fill:"
	archivePrefix = "archive:"
)

// notePlan adds the plan and its fills if they are new, and finds what is to be filled. It puts back plans and fills that the
// store has read before and the namespace has lost: another master has taken the place of the one that had them, or an older
// copy. They never change, so whoever puts them back puts back the same.
func (s *Store) notePlan(ctx context.Context, p *state.Plan) error {
	for {
		known, listed, err := s.allPlans(ctx)
		if err != nil {
			return err
		}
		for _, f := range newFills(p, &known) {
			known.Fills[f.ID] = f
		}
		known.Plans[p.Version] = p
		fields, err := lackingFields(&known, listed)
		if err != nil {
			return err
		}
		if len(fields) == 0 {
			s.claimed.Store(p.Version, claimFills(p, &known))
			return nil
		}
		if err := s.addToPlans(ctx, len(listed), fields); err != nil {
			return err
		}
	}
}

// lackingFields returns the fields of plans and fills that are not listed: names and values.
func lackingFields(known *state.Known, listed map[string]bool) (fields []any, err error) {
	add := func(name string, content any) {
		if listed[name] || err != nil {
			return
		}
		var text []byte
		text, err = json.Marshal(content)
		fields = append(fields, name, text)
	}
	for version, p := range known.Plans {
		add(version, p)
	}
	for id, f := range known.Fills {
		add(fillPrefix+id, f)
	}
	return fields, err
}

// newFills returns the fills that a plan adds: of series that no plan had before, and of the parts of other fills that
// it keeps.
func newFills(p *state.Plan, known *state.Known) []*state.Fill {
	fresh := state.NewFills(p, slices.Collect(maps.Values(known.Plans)))
	for _, f := range known.Fills {
		part := f.Part(p)
		if part != nil && known.Fills[part.ID] == nil && !slices.ContainsFunc(fresh, func(f *state.Fill) bool { return f.ID == part.ID }) {
			fresh = append(fresh, part)
		}
	}
	return fresh
}

// addToPlans adds fields, names and values, unless others were added since a number of them was read.
func (s *Store) addToPlans(ctx context.Context, read int, fields []any) error {
	command := redis.NewCmd(ctx, append([]any{"eval", planLua, 1, plansKey(s.namespace), read}, fields...)...)
	command.SetFirstKeyPos(3)
	return s.sendAbout(ctx, plansKey(s.namespace), command)
}

// Archives returns the archives of the namespace.
func (s *Store) Archives(ctx context.Context) ([]*state.Archive, error) {
	known, _, err := s.allPlans(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the archives: %w", err)
	}
	return known.Archives, nil
}

// AddArchive adds the files of a draft that the namespace does not know to those before its cut.
func (s *Store) AddArchive(ctx context.Context, draft *state.Archive) error {
	for {
		known, listed, err := s.allPlans(ctx)
		if err != nil {
			return fmt.Errorf("read the archives: %w", err)
		}
		a := state.NewArchive(*draft, known.Archives)
		if a == nil {
			return nil
		}
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if err := s.addToPlans(ctx, len(listed), []any{archivePrefix + a.ID, text}); err != nil {
			return fmt.Errorf("register the files: %w", err)
		}
	}
}

// allPlans reads all plans that ever wrote to the namespace, their fills, and the archives, and the names of these fields.
// Plans and fills that the store has read before are among them even if the namespace has lost them since. (Files that were
// registered before may have been registered again.)
func (s *Store) allPlans(ctx context.Context) (known state.Known, listed map[string]bool, err error) {
	names := redis.NewStringSliceCmd(ctx, "hkeys", plansKey(s.namespace))
	if err := s.sendAbout(ctx, plansKey(s.namespace), names); err != nil {
		return known, nil, err
	}
	listed = map[string]bool{}
	versions, fills := s.plans.ids(), s.fills.ids()
	var archives []string
	for _, name := range names.Val() {
		listed[name] = true
		if id, isFill := strings.CutPrefix(name, fillPrefix); isFill {
			fills[id] = true
		} else if id, isArchive := strings.CutPrefix(name, archivePrefix); isArchive {
			archives = append(archives, id)
		} else {
			versions[name] = true
		}
	}
	if known.Plans, err = s.plansOf(ctx, versions); err != nil {
		return known, nil, err
	}
	if known.Fills, err = s.fillsOf(ctx, fills); err != nil {
		return known, nil, err
	}
	found, err := s.archives.get(ctx, s, "archive", archivePrefix, archives, func(id string) *state.Archive { return &state.Archive{ID: id} })
	known.Archives = slices.Collect(maps.Values(found))
	if err == nil && len(known.Plans)+len(known.Fills)+len(found) < len(versions)+len(fills)+len(archives) {
		err = fmt.Errorf("read the plans: %w", state.ErrUnavailable)
	}
	return known, listed, err
}

// claimFills returns the arguments of claim.lua about fills: fills that continue others come after these.
func claimFills(p *state.Plan, known *state.Known) []any {
	args := []any{len(known.Fills)}
	for _, f := range state.InOrder(known.Fills) {
		part := ""
		if goesOn := f.Part(p); goesOn != nil {
			part = goesOn.ID
		}
		args = append(args, f.ID, [...]string{state.KeptNone: "none", state.KeptPart: "part", state.KeptAll: "all"}[f.In(p)], part, len(f.Columns))
		for topic := range f.Columns {
			args = append(args, topic)
		}
		var free, whole []any
		for version, other := range known.Plans {
			switch f.In(other) {
			case state.KeptNone:
				free = append(free, version)
			case state.KeptAll:
				whole = append(whole, version)
			case state.KeptPart:
			}
		}
		args = append(append(args, len(free)), free...)
		args = append(append(args, len(whole)), whole...)
		var before, sharing []any
		for id, other := range known.Fills {
			if f.PartOf(other) {
				before = append(before, id)
			}
			if other != f && f.Shares(other) {
				sharing = append(sharing, id)
			}
		}
		args = append(append(args, len(before)), before...)
		args = append(append(args, len(sharing)), sharing...)
	}
	return args
}

// planCache caches plans, fills or archives by ID. An ID is a hash, so its content never changes.
type planCache[T any] struct {
	mu    sync.Mutex
	known map[string]*T
}

// ids returns the IDs of all that is cached.
func (c *planCache[T]) ids() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[string]bool{}
	for id := range c.known {
		ids[id] = true
	}
	return ids
}

// plansOf returns the known plans among the versions.
func (s *Store) plansOf(ctx context.Context, versions map[string]bool) (map[string]*state.Plan, error) {
	ids := slices.DeleteFunc(slices.Collect(maps.Keys(versions)), func(version string) bool {
		return version == "" || version == state.Gap || strings.Contains(version, ":")
	})
	return s.plans.get(ctx, s, "plan", "", ids, func(id string) *state.Plan { return &state.Plan{Version: id} })
}

// fillsOf returns the known fills among the IDs.
func (s *Store) fillsOf(ctx context.Context, ids map[string]bool) (map[string]*state.Fill, error) {
	all := slices.Collect(maps.Keys(ids))
	return s.fills.get(ctx, s, "fill", fillPrefix, all, func(id string) *state.Fill { return &state.Fill{ID: id} })
}

// get finds the content of IDs. It reads those that are not cached from their fields. IDs that the store lacks are left
// out, and so are those not cached while it is unavailable: an unknown plan keeps nothing, and an unknown fill is not
// filled.
func (c *planCache[T]) get(ctx context.Context, s *Store, what, prefix string, ids []string, empty func(id string) *T) (map[string]*T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*T{}
	var missing, fields []string
	for _, id := range ids {
		if known := c.known[id]; known != nil {
			found[id] = known
		} else {
			missing, fields = append(missing, id), append(fields, prefix+id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	texts, err := s.planTexts(ctx, fields)
	if errors.Is(err, state.ErrUnavailable) {
		return found, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the %ss: %w", what, err)
	}
	if c.known == nil {
		c.known = map[string]*T{}
	}
	for i, id := range missing {
		text, ok := texts[i].(string)
		if !ok {
			continue
		}
		read := empty(id)
		if err := json.Unmarshal([]byte(text), read); err != nil {
			return nil, fmt.Errorf("read the %s %s: %w", what, id, err)
		}
		c.known[id], found[id] = read, read
	}
	return found, nil
}

// planTexts reads fields of the plans, as JSON; nil for missing ones.
func (s *Store) planTexts(ctx context.Context, fields []string) ([]any, error) {
	args := []any{"hmget", plansKey(s.namespace)}
	for _, field := range fields {
		args = append(args, field)
	}
	texts := redis.NewSliceCmd(ctx, args...)
	if err := s.sendAbout(ctx, plansKey(s.namespace), texts); err != nil {
		return nil, err
	}
	return texts.Val(), nil
}
