package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// group holds all series in one key of an entity.
type group struct {
	name   string
	keys   []record.Field // in the order of the entity's text
	series []*state.Series
	// parent is a series of a group without series of its own, whose keys embed children.
	parent *state.Series
}

// any returns a series with the location of the group's.
func (g *group) any() *state.Series {
	if len(g.series) == 0 {
		return g.parent
	}
	return g.series[0]
}

// groups returns the groups, by their keys, of the series that the named features need, or that any feature needs if
// none is named.
func groups(registry *features.Registry, names []string) ([]*group, error) {
	wanted := map[*state.Series]bool{}
	for _, name := range names {
		f, err := registry.FeatureNamed(name)
		if err != nil {
			return nil, fmt.Errorf("--feature: %w", err)
		}
		for _, s := range f.Series {
			wanted[s] = true
		}
	}
	byName := map[string]*group{}
	for _, s := range registry.Series {
		if len(names) > 0 && !wanted[s] {
			continue
		}
		g := byName[s.Group]
		if g == nil {
			g = &group{name: s.Group, keys: fields(registry, s, s.By)}
			byName[s.Group] = g
		}
		g.series = append(g.series, s)
	}
	for _, s := range registry.Series {
		if len(names) == 0 && s.Parent != "" && byName[s.Parent] == nil {
			parent := &state.Series{Group: s.Parent, GroupKeep: s.ParentKeep}
			byName[s.Parent] = &group{name: s.Parent, keys: fields(registry, s, s.By[:1]), parent: parent}
		}
	}
	var list []*group
	for _, g := range byName {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *group) int { return cmp.Or(cmp.Compare(a.by(), b.by()), cmp.Compare(a.name, b.name)) })
	return list, nil
}

// fields returns fields of a series' stream.
func fields(registry *features.Registry, s *state.Series, names []string) (list []record.Field) {
	stream, _ := registry.Stream(s.Stream)
	for _, name := range names {
		list = append(list, stream.Fields[stream.FieldIndex(name)])
	}
	return list
}

// by returns the names of the group's keys.
func (g *group) by() string {
	var names []string
	for _, key := range g.keys {
		names = append(names, key.Name)
	}
	return strings.Join(names, ",")
}

// of keeps the groups whose keys are all given, and reports keys that no group has.
func of(list []*group, given map[string]string) ([]*group, error) {
	var found []*group
	used, all := map[string]bool{}, []string{}
	for _, g := range list {
		if !slices.Contains(all, g.by()) {
			all = append(all, g.by())
		}
		if slices.ContainsFunc(g.keys, func(f record.Field) bool { _, ok := given[f.Name]; return !ok }) {
			continue
		}
		found = append(found, g)
		for _, key := range g.keys {
			used[key.Name] = true
		}
	}
	for name := range given {
		if !used[name] {
			return nil, fmt.Errorf("no state is kept by %s with the keys given; it is kept by %s", name, strings.Join(all, "; "))
		}
	}
	return found, nil
}

// entity returns the text of the group's entity.
func (g *group) entity(given map[string]string) (string, error) {
	var text []byte
	for i, key := range g.keys {
		v, ok := parse(key, given[key.Name])
		if !ok {
			return "", fmt.Errorf("%s=%s is not a valid %s", key.Name, given[key.Name], key.Type)
		}
		text = state.AppendEntity(text, i == 0, v)
	}
	return string(text), nil
}

// parse parses the value of a key. Floats and locations cannot name entities.
func parse(key record.Field, text string) (v value.Value, ok bool) {
	switch key.Type {
	case value.Float, value.Location:
		return v, false
	case value.Decimal:
		number, ok := value.ParseNumber([]byte(text))
		num, how := number.Scaled(int(key.Scale))
		return value.Value{Type: value.Decimal, Scale: key.Scale, Num: num}, ok && how == value.Exact
	case value.Timestamp:
		if t, err := time.Parse(time.RFC3339, text); err == nil {
			return value.Value{Type: value.Timestamp, Num: t.UnixMilli()}, true
		}
	}
	v = value.ParseText(key.Type, key.Scale, text)
	return v, !v.IsNull()
}
