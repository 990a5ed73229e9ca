// Package inspect shows what is kept of an entity, as it stands.
package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/cost"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/state/packed"
	"github.com/weir-stream/weir/store/redis/inspector"
	"github.com/weir-stream/weir/value"
)

// Store is what is looked into.
type Store interface {
	Inspect(ctx context.Context, series *state.Series, entity string) (inspector.Held, error)
	ShardProgress(ctx context.Context, shard int) (offsets map[state.Partition]int64, newest int64, err error)
}

// Key is one key of Redis with what it holds of an entity.
type Key struct {
	Entity map[string]string `json:"entity"`
	By     []string          `json:"by"`
	Shard  int               `json:"shard"`
	Key    string            `json:"key"`
	// Bytes is the length of what is held; nothing is where it is 0.
	Bytes int `json:"bytes"`
	// TimeToLive is in seconds; null for ever, or where nothing is held.
	TimeToLive *int64     `json:"time_to_live,omitempty"`
	Progress   []Progress `json:"progress"` // of the shard
	// Newest is the greatest timestamp of a record that the shard has applied, in
	// ms; 0 for none.
	Newest int64    `json:"newest"`
	Series []Series `json:"series"`
	// Damage is what is wrong with the key, empty where nothing is. What is listed
	// then is what can still be read.
	Damage string `json:"damage,omitempty"`
	// Lost are the losses of damaged state that was dropped.
	Lost    []Lost    `json:"lost,omitempty"`
	Unknown []Unknown `json:"unknown,omitempty"`
}

// Progress is the next offset of a partition that a shard applies.
type Progress struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Applied   int64  `json:"applied"`
}

// Series is what is held of one series.
type Series struct {
	cost.Series
	Sections int     `json:"sections"` // 1, and those that came since it was compacted
	Bytes    int     `json:"bytes"`
	CutOff   *int64  `json:"cut_off,omitempty"` // in ms; up to when a log's cap has cut events off
	Entries  []Entry `json:"entries"`
}

// Entry is one thing held: see packed.Entry. Times are in ms since 1970, those of
// tiles the first of the tile.
type Entry struct {
	Key       *string           `json:"key,omitempty"` // under which it is kept apart
	Times     []int64           `json:"times,omitempty"`
	Member    *string           `json:"member,omitempty"`
	Value     *string           `json:"value,omitempty"`
	Estimate  *int64            `json:"estimate,omitempty"`
	Registers int               `json:"registers,omitempty"`
	Hashes    int               `json:"hashes,omitempty"`
	Bits      int               `json:"bits,omitempty"`
	Moments   *Moments          `json:"moments,omitempty"`
	Columns   map[string]string `json:"columns,omitempty"` // of an event
}

// Moments are the number of the values of a tile, their mean, and the sum of the
// squares of their distances from it.
type Moments struct {
	Number  int64   `json:"number"`
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
}

// Lost is a loss: of the series named, or of all, what records did whose timestamps
// go up to a moment, in ms.
type Lost struct {
	Until  int64    `json:"until"`
	Series []string `json:"series,omitempty"`
}

// Unknown is a series that the definitions do not have, or no longer.
type Unknown struct {
	Tag      string `json:"tag"`
	Sections int    `json:"sections"`
	Bytes    int    `json:"bytes"`
}

// Read looks up what is kept of the entities that the given keys make: of the
// features named, or of all. It reads only.
func Read(ctx context.Context, s Store, registry *features.Registry, given map[string]string, names []string) ([]Key, error) {
	wanted, all, err := find(registry, given, names)
	if err != nil {
		return nil, err
	}
	plans := map[string]cost.Series{}
	for _, p := range cost.Explain(registry).Series {
		plans[p.ID] = p
	}
	var keys []Key
	for _, g := range wanted {
		entity, err := g.entity(given)
		if err != nil {
			return nil, err
		}
		held, err := s.Inspect(ctx, all[g.name].series[0], entity)
		if err != nil {
			return nil, err
		}
		offsets, newest, err := s.ShardProgress(ctx, held.Shard)
		if err != nil {
			return nil, err
		}
		k := newKey(g, given, held, offsets, newest)
		if held.Type != "" {
			k.Damage = foreign(held)
		} else if held.ParentDamage != nil {
			k.Damage = ofParent(held)
		} else if err := k.unpack(registry, plans, g, all[g.name], held.Packed); err != nil {
			k.Damage = err.Error()
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// find finds the groups of the keys given that features need, and by name all
// groups whole.
func find(registry *features.Registry, given map[string]string, names []string) (wanted []*group, all map[string]*group, err error) {
	whole, err := groups(registry, nil)
	if err != nil {
		return nil, nil, err
	}
	all = map[string]*group{}
	for _, g := range whole {
		all[g.name] = g
	}
	if wanted, err = groups(registry, names); err != nil {
		return nil, nil, err
	}
	wanted, err = of(wanted, given)
	return wanted, all, err
}

// foreign says what is wrong with a key that holds no string.
func foreign(held inspector.Held) string {
	return "it is a " + held.Type + ", which Weir has not written"
}

// ofParent says that the key of an entity's parent is damaged.
func ofParent(held inspector.Held) string {
	return fmt.Sprintf("what is kept with its parent cannot be told, for the key %s is damaged: %v", visible(held.Parent), held.ParentDamage)
}

// series is the series of the group with a tag, nil for none.
func (g *group) tagged(tag uint32) *state.Series {
	i := slices.IndexFunc(g.series, func(s *state.Series) bool { return s.Tag() == tag })
	if i < 0 {
		return nil
	}
	return g.series[i]
}

func newKey(g *group, given map[string]string, held inspector.Held, offsets map[state.Partition]int64, newest int64) Key {
	k := Key{
		Entity: map[string]string{}, Shard: held.Shard, Key: held.Key, Bytes: len(held.Packed), Newest: newest,
		Progress: []Progress{}, Series: []Series{},
	}
	for _, key := range g.keys {
		k.By = append(k.By, key.Name)
		k.Entity[key.Name] = given[key.Name]
	}
	if held.TimeToLive > 0 {
		seconds := int64(held.TimeToLive / time.Second)
		k.TimeToLive = &seconds
	}
	for p, offset := range offsets {
		k.Progress = append(k.Progress, Progress{p.Topic, p.ID, offset})
	}
	slices.SortFunc(k.Progress, func(a, b Progress) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return k
}

// unpack takes in what is held of the group's series.
func (k *Key) unpack(registry *features.Registry, plans map[string]cost.Series, g, whole *group, data []byte) error {
	parts, wrong := packed.Unpack(data, whole.tagged)
	var losses packed.Losses
	_ = packed.Sections(data, func(tag uint32, body []byte) error { // its error is the same
		_, err := losses.Take(tag, body)
		return err
	})
	for _, l := range losses {
		lost := Lost{Until: l.Until}
		for _, tag := range l.Tags {
			if s := whole.tagged(tag); s != nil {
				lost.Series = append(lost.Series, s.ID)
			}
		}
		k.Lost = append(k.Lost, lost)
	}
	for _, p := range parts {
		if p.Tag == packed.LossTag {
			continue
		}
		if p.Series == nil {
			k.Unknown = append(k.Unknown, Unknown{fmt.Sprintf("%06x", p.Tag), p.Sections, p.Bytes})
			continue
		}
		if !slices.Contains(g.series, p.Series) {
			continue // of other features than those asked for
		}
		s := Series{Series: plans[p.Series.ID], Sections: p.Sections, Bytes: p.Bytes, Entries: []Entry{}}
		entries, cutOff, err := packed.Entries(p.Series, p.State)
		wrong = cmp.Or(wrong, err)
		s.CutOff = cutOff
		columns := registry.LogColumns(p.Series)
		for i := range entries {
			e, err := newEntry(p.Series, &entries[i], columns)
			wrong = cmp.Or(wrong, err)
			s.Entries = append(s.Entries, e)
		}
		k.Series = append(k.Series, s)
	}
	slices.SortFunc(k.Series, func(a, b Series) int { return cmp.Compare(a.ID, b.ID) })
	return wrong
}

// newEntry turns tiles into times and values into texts.
func newEntry(s *state.Series, from *packed.Entry, columns []features.LogColumn) (e Entry, err error) {
	e = Entry{Key: from.Key, Member: from.Member, Registers: from.Registers, Hashes: from.Hashes, Bits: from.Bits}
	for _, tile := range from.Tiles {
		if !s.Measure.Layout().Exact() {
			if s.Tile == 0 {
				break // one tile for ever
			}
			tile *= s.Tile
		}
		e.Times = append(e.Times, tile)
	}
	if !from.Value.IsNull() {
		text := string(from.Value.AppendText(nil))
		e.Value = &text
	}
	if from.Registers > 0 {
		e.Estimate = &from.Estimate
	}
	if m := from.Moments; m.N > 0 {
		e.Moments = &Moments{m.N, m.Mean, m.Squares}
	}
	if from.Record == nil {
		return e, nil
	}
	e.Times = []int64{from.Record.Time}
	e.Columns = map[string]string{}
	tags, err := from.Record.Tags()
	for _, tag := range tags {
		i := slices.IndexFunc(columns, func(c features.LogColumn) bool { return c.Tag() == tag })
		if i < 0 {
			e.Columns[fmt.Sprintf("unknown column %06x", tag)] = ""
			continue
		}
		v, _, err := from.Record.Column(columns[i].Column)
		if err != nil {
			return e, err
		}
		if columns[i].Type == value.Null {
			v = value.Value{Type: value.Bool, Num: 1}
		}
		e.Columns[columns[i].Name] = string(v.AppendText(nil))
	}
	return e, err
}
