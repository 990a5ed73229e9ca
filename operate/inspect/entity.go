package inspect

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/internal/spelling"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// group is all series that stand in one key of an entity.
type group struct {
	name   string
	keys   []record.Field // in the order of the entity's text
	series []*state.Series
}

// groups are those of the series that one of the features needs, of all if none
// is named, by their keys.
func groups(registry *features.Registry, names []string) ([]*group, error) {
	wanted := map[*state.Series]bool{}
	for _, name := range names {
		f, ok := registry.Feature(name)
		if !ok {
			return nil, fmt.Errorf("--feature: %s", spelling.Unknown("feature", name, known(registry)))
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
			stream, _ := registry.Stream(s.Stream)
			g = &group{name: s.Group}
			for _, by := range s.By {
				i := slices.IndexFunc(stream.Fields, func(f record.Field) bool { return f.Name == by })
				g.keys = append(g.keys, stream.Fields[i])
			}
			byName[s.Group] = g
		}
		g.series = append(g.series, s)
	}
	var list []*group
	for _, g := range byName {
		list = append(list, g)
	}
	slices.SortFunc(list, func(a, b *group) int { return cmp.Or(cmp.Compare(a.by(), b.by()), cmp.Compare(a.name, b.name)) })
	return list, nil
}

func known(registry *features.Registry) (names []string) {
	for _, f := range registry.Features {
		names = append(names, f.Name)
	}
	return names
}

// by names the group's keys.
func (g *group) by() string {
	var names []string
	for _, key := range g.keys {
		names = append(names, key.Name)
	}
	return strings.Join(names, ",")
}

// of keeps the groups all of whose keys are given, and finds keys that none has.
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

// entity is the text of the group's entity.
func (g *group) entity(given map[string]string) (string, error) {
	var text []byte
	for i, key := range g.keys {
		v, ok := parse(key, given[key.Name])
		if !ok {
			return "", fmt.Errorf("%s=%s is no %s", key.Name, given[key.Name], key.Type)
		}
		text = state.AppendEntity(text, i == 0, v)
	}
	return string(text), nil
}

// parse reads the value of a key.
func parse(key record.Field, text string) (value.Value, bool) {
	v := value.Value{Type: key.Type, Scale: key.Scale}
	var err error
	switch key.Type {
	case value.String:
		v.Str = []byte(text)
	case value.Int:
		v.Num, err = strconv.ParseInt(text, 10, 64)
	case value.Bool:
		if text != "true" && text != "false" {
			return v, false
		}
		v.Num = map[string]int64{"true": 1}[text]
	case value.Timestamp:
		var t time.Time
		if t, err = time.Parse(time.RFC3339, text); err == nil {
			v.Num = t.UnixMilli()
		} else {
			v.Num, err = strconv.ParseInt(text, 10, 64)
		}
	case value.Decimal:
		number, ok := new(big.Rat).SetString(text)
		if !ok {
			return v, false
		}
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(key.Scale)), nil)
		number.Mul(number, new(big.Rat).SetInt(scale))
		v.Num = number.Num().Int64()
		return v, number.IsInt() && number.Num().IsInt64()
	default: // floats and locations name no entity
		return v, false
	}
	return v, err == nil
}
