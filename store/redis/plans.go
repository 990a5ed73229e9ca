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

	"github.com/redis/go-redis/v9"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

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
		for _, f := range progress.NewFills(p, &known) {
			known.Fills[f.ID] = f
		}
		known.Plans[p.Version] = p
		fields, err := lackingFields(&known, listed)
		if err != nil {
			return err
		}
		if len(fields) == 0 {
			s.claimants.Store(p.Version, progress.NewClaimant(p.Version, nil, &known))
			return nil
		}
		if _, err := s.addToPlans(ctx, listed.last, fields); err != nil {
			return err
		}
	}
}

// lackingFields returns the fields of plans and fills that are not listed.
func lackingFields(known *state.Known, listed listing) (fields map[string]string, err error) {
	fields = map[string]string{}
	add := func(name string, content any) {
		if listed.names[name] || err != nil {
			return
		}
		var text []byte
		text, err = json.Marshal(content)
		fields[name] = string(text)
	}
	for version, p := range known.Plans {
		add(version, p)
	}
	for id, f := range known.Fills {
		add(fillPrefix+id, f)
	}
	return fields, err
}

// addToPlans adds fields to the plans, unless any were added since the change that was the last when they were read.
func (s *Store) addToPlans(ctx context.Context, last string, fields map[string]string) (bool, error) {
	return s.writeRegister(ctx, plansKey(s.namespace), last, &progress.Change{Set: fields})
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
		if _, err := s.addToPlans(ctx, listed.last, map[string]string{archivePrefix + a.ID: string(text)}); err != nil {
			return fmt.Errorf("register the files: %w", err)
		}
	}
}

// listing has the names of the fields of the plans, and the name of the last change when they were read.
type listing struct {
	last  string
	names map[string]bool
}

// allPlans reads all plans that ever wrote to the namespace, their fills, and the archives, and the names of these fields.
// Plans and fills that the store has read before are among them even if the namespace has lost them since. (Files that were
// registered before may have been registered again.)
func (s *Store) allPlans(ctx context.Context) (known state.Known, listed listing, err error) {
	// The last change is read first: a change after it is found when fields are added.
	last := redis.NewStringCmd(ctx, "hget", plansKey(s.namespace), progress.ChangeField)
	if err := s.sendAbout(ctx, plansKey(s.namespace), last); err != nil && !errors.Is(err, redis.Nil) {
		return known, listed, err
	}
	names := redis.NewStringSliceCmd(ctx, "hkeys", plansKey(s.namespace))
	if err := s.sendAbout(ctx, plansKey(s.namespace), names); err != nil {
		return known, listed, err
	}
	listed = listing{last.Val(), map[string]bool{}}
	versions, fills := s.plans.ids(), s.fills.ids()
	var archives []string
	for _, name := range names.Val() {
		if name == progress.ChangeField {
			continue
		}
		listed.names[name] = true
		if id, isFill := strings.CutPrefix(name, fillPrefix); isFill {
			fills[id] = true
		} else if id, isArchive := strings.CutPrefix(name, archivePrefix); isArchive {
			archives = append(archives, id)
		} else {
			versions[name] = true
		}
	}
	if known.Plans, err = s.plansOf(ctx, versions); err != nil {
		return known, listed, err
	}
	if known.Fills, err = s.fillsOf(ctx, fills); err != nil {
		return known, listed, err
	}
	found, err := s.archives.get(ctx, s, "archive", archivePrefix, archives, func(id string) *state.Archive { return &state.Archive{ID: id} })
	known.Archives = slices.Collect(maps.Values(found))
	if err == nil && len(known.Plans)+len(known.Fills)+len(found) < len(versions)+len(fills)+len(archives) {
		err = fmt.Errorf("read the plans: %w", state.ErrUnavailable)
	}
	return known, listed, err
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
