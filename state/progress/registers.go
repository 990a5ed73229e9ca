package progress

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/state"
)

// Beside the records of shards, a namespace has registers: which plans are in use, and which plans and fills there ever were. A
// store keeps their fields, and changes them as it changes records.

// Applying is a group that applies a plan: when a processor of it last began with the plan, and when one last registered it.
type Applying struct {
	Group, Version string
	Began, Used    time.Time
}

func (a *Applying) field() (name, value string) {
	return a.Version + "/" + a.Group, number(a.Began.UnixMilli()) + ":" + number(a.Used.UnixMilli())
}

var errNotUsed = errors.New("not the times when a plan began and was used")

// InUse returns the plans in use from the fields of their register: "<version>/<group>" and "<began>:<used>", in ms. The latest comes
// first.
func InUse(fields map[string]string) (list []Applying, err error) {
	for name, value := range fields {
		if name == ChangeField {
			continue
		}
		version, group, _ := strings.Cut(name, "/")
		first, second, _ := strings.Cut(value, ":")
		began, err := parseTime(first)
		used, err2 := parseTime(second)
		if err != nil || err2 != nil {
			return nil, fmt.Errorf("the field %s of the plans in use is %q: %w", name, value, errNotUsed)
		}
		list = append(list, Applying{Group: group, Version: version, Began: time.UnixMilli(began), Used: time.UnixMilli(used)})
	}
	slices.SortFunc(list, func(a, b Applying) int { return b.Began.Compare(a.Began) })
	return list, nil
}

// Register registers that a group applies a plan, by a clock in ms. It returns the change of the register, and the plans with which
// other groups began later. A plan keeps the beginning of another one of the same definitions, with other generations of series, and
// group.
func Register(fields map[string]string, r *state.Registration, clock int64) (*Change, []state.Rival, error) {
	list, err := InUse(fields)
	if err != nil {
		return nil, nil, err
	}
	now := r.At
	if now.IsZero() {
		now = time.UnixMilli(clock)
	}
	own := Applying{Group: r.Group, Version: r.Plan.Version, Used: now}
	var newest, continued time.Time
	for _, a := range list {
		newest = latest(newest, a.Began)
		switch {
		case a.Group != r.Group:
		case a.Version == own.Version:
			own.Began = a.Began
		case definitions(a.Version) == definitions(own.Version):
			continued = latest(continued, a.Began)
		}
	}
	if own.Began.IsZero() {
		own.Began = continued
	}
	if r.Begins || own.Began.IsZero() {
		// No two plans begin at the same time, even if the clock of a server goes back after a failover.
		own.Began = latest(now, newest.Add(time.Millisecond))
	}
	name, value := own.field()
	c := &Change{Seen: map[string]string{}, Set: map[string]string{name: value}}
	var rivals []state.Rival
	for _, a := range slices.Backward(list) {
		if a.Version != own.Version && a.Group != own.Group && a.Began.After(own.Began) && now.Sub(a.Used) < state.RivalInUse {
			rivals = append(rivals, state.Rival{Version: a.Version, Group: a.Group, Began: a.Began})
		}
	}
	return c, rivals, nil
}

func definitions(version string) string { return (&state.Plan{Version: version}).Definitions() }

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// NewFills returns the fills that a plan adds to the known ones of a namespace: of series that no plan had before, and of the parts
// of other fills that it keeps.
func NewFills(p *state.Plan, known *state.Known) []*state.Fill {
	fresh := state.NewFills(p, slices.Collect(maps.Values(known.Plans)))
	for _, f := range known.Fills {
		part := f.Part(p)
		if part != nil && known.Fills[part.ID] == nil && !slices.ContainsFunc(fresh, func(f *state.Fill) bool { return f.ID == part.ID }) {
			fresh = append(fresh, part)
		}
	}
	return fresh
}
