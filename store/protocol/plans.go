package protocol

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/progress"
)

// The register of plans has a field for each plan, by its version, for each fill and for each archive, by their IDs behind these
// prefixes; all as JSON.
const (
	fillPrefix    = "fill:"
	archivePrefix = "archive:"
)

// notePlan adds the plan and its fills if they are new, and finds what is to be filled. It puts back plans and fills
// that this process has read before and the namespace has lost: another server has taken the place of the one that had
// them, or an older copy. They never change, so whoever puts them back puts back the same.
func (p *Protocol) notePlan(ctx context.Context, plan *state.Plan) error {
	for range maxAttempts {
		known, listed, err := p.allPlans(ctx)
		if err != nil {
			return err
		}
		for _, f := range progress.NewFills(plan, known) {
			known.Fills[f.ID] = f
		}
		known.Plans[plan.Version] = plan
		fields, err := lackingFields(known, listed)
		if err != nil {
			return err
		}
		if len(fields) == 0 {
			p.claimants.Store(plan.Version, progress.NewClaimant(plan.Version, nil, known))
			return nil
		}
		if _, err := p.addToPlans(ctx, listed, fields); err != nil {
			return err
		}
	}
	return p.changesTooOften(Plans)
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

// addToPlans adds fields to the plans, unless any were added since they were listed.
func (p *Protocol) addToPlans(ctx context.Context, listed listing, fields map[string]string) (bool, error) {
	return p.writeRegister(ctx, Plans, listed.last, &progress.Change{Set: fields})
}

// Archives returns the archives of the namespace.
func (p *Protocol) Archives(ctx context.Context) ([]*state.Archive, error) {
	known, err := p.Known(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the archives: %w", err)
	}
	return known.Archives, nil
}

// AddArchive adds the files of a draft that the namespace does not know to those before its cut.
func (p *Protocol) AddArchive(ctx context.Context, draft *state.Archive) error {
	for range maxAttempts {
		known, listed, err := p.allPlans(ctx)
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
		if _, err := p.addToPlans(ctx, listed, map[string]string{archivePrefix + a.ID: string(text)}); err != nil {
			return fmt.Errorf("register the files: %w", err)
		}
	}
	return p.changesTooOften(Plans)
}

// Known returns all plans that ever wrote to the namespace, their fills, and the archives. Plans and fills that this process has read
// before are among them even if the namespace has lost them since. (Files that were registered before may have been registered
// again.)
func (p *Protocol) Known(ctx context.Context) (*state.Known, error) {
	known, _, err := p.allPlans(ctx)
	return known, err
}

// listing has the names of the fields of the plans, and the name of the last change when they were read.
type listing struct {
	last  string
	names map[string]bool
}

// allPlans is Known, and also lists the names of the fields that the namespace has now.
func (p *Protocol) allPlans(ctx context.Context) (known *state.Known, listed listing, err error) {
	// The last change is read first: a change after it is found when fields are added.
	last := p.engine.Read(ctx, Query{Records: []int{Plans}, Names: []string{progress.ChangeField}, For: ToReport})[0]
	if last.Err != nil {
		return nil, listed, last.Err
	}
	names, err := p.engine.Names(ctx, Plans)
	if err != nil {
		return nil, listed, err
	}
	listed = listing{last.Fields[progress.ChangeField], map[string]bool{}}
	versions, fills := p.plans.ids(), p.fills.ids()
	archives := map[string]bool{}
	for _, name := range names {
		if name == progress.ChangeField {
			continue
		}
		listed.names[name] = true
		if id, isFill := strings.CutPrefix(name, fillPrefix); isFill {
			fills[id] = true
		} else if id, isArchive := strings.CutPrefix(name, archivePrefix); isArchive {
			archives[id] = true
		} else {
			versions[name] = true
		}
	}
	known = &state.Known{}
	if known.Plans, err = p.plansOf(ctx, versions); err != nil {
		return nil, listed, err
	}
	if known.Fills, err = p.fillsOf(ctx, fills); err != nil {
		return nil, listed, err
	}
	found, err := p.archives.get(ctx, p.engine, "archive", archivePrefix, archives, func(id string) *state.Archive { return &state.Archive{ID: id} })
	known.Archives = slices.Collect(maps.Values(found))
	if err == nil && len(known.Plans)+len(known.Fills)+len(found) < len(versions)+len(fills)+len(archives) {
		err = fmt.Errorf("read the plans: %w", state.ErrUnavailable)
	}
	return known, listed, err
}

// cache caches plans, fills or archives by ID. An ID is a hash, so its content never changes.
type cache[T any] struct {
	mu    sync.Mutex
	known map[string]*T
}

// ids returns the IDs of all that is cached.
func (c *cache[T]) ids() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	ids := map[string]bool{}
	for id := range c.known {
		ids[id] = true
	}
	return ids
}

// plansOf returns the known plans among the versions.
func (p *Protocol) plansOf(ctx context.Context, versions map[string]bool) (map[string]*state.Plan, error) {
	maps.DeleteFunc(versions, func(version string, _ bool) bool {
		return version == "" || version == state.Gap || strings.Contains(version, ":")
	})
	return p.plans.get(ctx, p.engine, "plan", "", versions, func(id string) *state.Plan { return &state.Plan{Version: id} })
}

// fillsOf returns the known fills among the IDs.
func (p *Protocol) fillsOf(ctx context.Context, ids map[string]bool) (map[string]*state.Fill, error) {
	return p.fills.get(ctx, p.engine, "fill", fillPrefix, ids, func(id string) *state.Fill { return &state.Fill{ID: id} })
}

// get finds the content of IDs. It reads those that are not cached from their fields. IDs that the namespace lacks are left
// out, and so are those not cached while it is unavailable: an unknown plan keeps nothing, and an unknown fill is not
// filled.
func (c *cache[T]) get(ctx context.Context, e Engine, what, prefix string, ids map[string]bool, empty func(id string) *T) (map[string]*T, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := map[string]*T{}
	var missing, names []string
	for id := range ids {
		if known := c.known[id]; known != nil {
			found[id] = known
		} else {
			missing, names = append(missing, id), append(names, prefix+id)
		}
	}
	if len(missing) == 0 {
		return found, nil
	}
	read := e.Read(ctx, Query{Records: []int{Plans}, Names: names, For: ToReport})[0]
	if errors.Is(read.Err, state.ErrUnavailable) {
		return found, nil
	}
	if read.Err != nil {
		return nil, fmt.Errorf("read the %ss: %w", what, read.Err)
	}
	if c.known == nil {
		c.known = map[string]*T{}
	}
	for i, id := range missing {
		text, ok := read.Fields[names[i]]
		if !ok {
			continue
		}
		content := empty(id)
		if err := json.Unmarshal([]byte(text), content); err != nil {
			return nil, fmt.Errorf("read the %s %s: %w", what, id, err)
		}
		c.known[id], found[id] = content, content
	}
	return found, nil
}
