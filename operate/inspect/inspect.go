// Package inspect shows the state that is kept of an entity.
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
	"github.com/weir-stream/weir/state/progress"
	"github.com/weir-stream/weir/value"
)

// Store is the inspected store.
type Store interface {
	Inspect(ctx context.Context, series *state.Series, entity string) (packed.Held, error)
	ShardProgress(ctx context.Context, shard int) (*progress.Record, error)
	Secret(ctx context.Context) (state.Secret, error)
}

// Key is one key of the store with its state of an entity.
type Key struct {
	Entity map[string]string `json:"entity"`
	By     []string          `json:"by"`
	Shard  int               `json:"shard"`
	Key    string            `json:"key"`
	// Bytes is the length of the state; 0 if there is none.
	Bytes int `json:"bytes"`
	// TimeToLive is in seconds; null if unlimited or unknown, or if there is no state.
	TimeToLive *int64     `json:"time_to_live,omitempty"`
	Progress   []Progress `json:"progress"` // of the shard
	// Newest is the greatest timestamp of a record that the shard has applied, in ms; 0 for none.
	Newest int64    `json:"newest"`
	Series []Series `json:"series"`
	// Damage describes what is wrong with the key; empty if nothing is. The listing then has what can still be read.
	Damage string `json:"damage,omitempty"`
	// Lost are the losses of dropped state.
	Lost     []Lost     `json:"lost,omitempty"`
	Children []Children `json:"children,omitempty"`
	Unknown  []Unknown  `json:"unknown,omitempty"`

	untold bool // the store cannot tell the time to live, and weir state drop not change it
}

// Progress is the next offset of a partition that a shard applies.
type Progress struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Applied   int64  `json:"applied"`
}

// Series is the state of one series.
type Series struct {
	cost.Series
	Sections int     `json:"sections"` // 1, plus those appended since the last compaction
	Bytes    int     `json:"bytes"`
	CutOff   *int64  `json:"cut_off,omitempty"` // in ms; up to when a log's cap has dropped events
	Entries  []Entry `json:"entries"`
}

// Entry is one item of state: see packed.Entry. Times are in ms since 1970; the time of a tile is
// its first.
type Entry struct {
	Key       *string           `json:"key,omitempty"` // the key under which it is kept
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

// Moments are the number of the values of a tile, their mean, and the sum of their squared deviations from it.
type Moments struct {
	Number  int64   `json:"number"`
	Mean    float64 `json:"mean"`
	Squares float64 `json:"squares"`
}

// Lost is a loss: the effect of records with timestamps up to a moment, in ms, on the named series,
// or on all.
type Lost struct {
	Until  int64    `json:"until"`
	Series []string `json:"series,omitempty"`
	// Refilling means that a refill is running, or was interrupted.
	Refilling bool `json:"refilling,omitempty"`
}

// Children are the entities of several values, such as a user with a device, whose state is embedded in this key.
type Children struct {
	By       []string `json:"by"`
	Sections int      `json:"sections"`
	Bytes    int      `json:"bytes"`
}

// Unknown is a series that the definitions do not have, or no longer.
type Unknown struct {
	Tag      string `json:"tag"`
	Sections int    `json:"sections"`
	Bytes    int    `json:"bytes"`
}

// Read reads the state of the entities with the given keys, for the named features or for all. It
// writes nothing.
func Read(ctx context.Context, s Store, registry *features.Registry, given map[string]string, names []string) (Keys, error) {
	wanted, all, err := find(registry, given, names)
	if err != nil {
		return nil, err
	}
	explained := map[string]cost.Series{}
	for _, p := range cost.Explain(registry).Series {
		explained[p.ID] = p
	}
	secret, err := s.Secret(ctx)
	if err != nil {
		return nil, err
	}
	var keys Keys
	for _, g := range wanted {
		entity, err := g.entity(given)
		if err != nil {
			return nil, err
		}
		held, err := s.Inspect(ctx, all[g.name].any(), entity)
		if err != nil {
			return nil, err
		}
		record, err := s.ShardProgress(ctx, held.Shard)
		if err != nil {
			return nil, err
		}
		k := newKey(g, given, held, record, state.SliceOf(state.EntityHash([]byte(entity))))
		if held.Type != "" {
			k.Damage = foreign(held)
		} else if held.ParentDamage != nil {
			k.Damage = ofParent(held)
		} else if err := k.unpack(registry, explained, g, all[g.name], held, secret); err != nil {
			k.Damage = err.Error()
		}
		if len(names) > 0 {
			k.Children = nil // of other features than requested
		}
		keys = append(keys, k)
	}
	return keys, nil
}

// find finds the groups of the given keys that features need, and all complete groups by name.
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

// foreign describes what is wrong with a key that does not hold a string.
func foreign(held packed.Held) string {
	return "it is a " + held.Type + ", which Weir has not written"
}

// ofParent describes the damage of the key of an entity's parent.
func ofParent(held packed.Held) string {
	return fmt.Sprintf("the state embedded in its parent is unknown, because the key %s is damaged: %v", visible(held.Parent), held.ParentDamage)
}

// tagged returns the series of the group with a tag, nil if there is none.
func (g *group) tagged(tag uint32) *state.Series {
	i := slices.IndexFunc(g.series, func(s *state.Series) bool { return s.Tag() == tag })
	if i < 0 {
		return nil
	}
	return g.series[i]
}

// newKey describes a key of an entity, given its slice.
func newKey(g *group, given map[string]string, held packed.Held, r *progress.Record, slice int) Key {
	k := Key{
		Entity: map[string]string{}, Shard: held.Shard, Key: held.Key, Bytes: len(held.Packed), Newest: r.Newest(),
		Progress: []Progress{}, Series: []Series{}, untold: held.TimeToLive == packed.UnknownTime,
	}
	for _, key := range g.keys {
		k.By = append(k.By, key.Name)
		k.Entity[key.Name] = given[key.Name]
	}
	if held.TimeToLive > 0 {
		seconds := int64(held.TimeToLive / time.Second)
		k.TimeToLive = &seconds
	}
	for p, h := range r.Held() {
		k.Progress = append(k.Progress, Progress{p.Topic, p.ID, h.At.In(slice)})
	}
	slices.SortFunc(k.Progress, func(a, b Progress) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.Partition, b.Partition))
	})
	return k
}

// unpack unpacks the group's series.
func (k *Key) unpack(registry *features.Registry, explained map[string]cost.Series, g, whole *group, held packed.Held, secret state.Secret) error {
	parts, wrong := packed.Unpack(held.Packed, secret, whole.tagged)
	for _, l := range append(lossesOf(held.Packed), held.ParentLosses...) {
		lost := Lost{Until: l.Until, Refilling: l.Mark != packed.Mark{}}
		for _, tag := range l.Tags {
			if packed.IsEmbedding(tag) {
				lost.Series = append(lost.Series, "of its children")
				break
			}
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
		child := slices.IndexFunc(registry.Series, func(s *state.Series) bool { return s.Parent == g.name && state.EmbeddingTag(s.Group) == p.Tag })
		if child >= 0 {
			k.Children = append(k.Children, Children{registry.Series[child].By, p.Sections, p.Bytes})
			continue
		}
		if p.Series == nil {
			k.Unknown = append(k.Unknown, Unknown{fmt.Sprintf("%06x", p.Tag), p.Sections, p.Bytes})
			continue
		}
		if !slices.Contains(g.series, p.Series) {
			continue // of other features than requested
		}
		s := Series{Series: explained[p.Series.ID], Sections: p.Sections, Bytes: p.Bytes, Entries: []Entry{}}
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

// lossesOf returns the losses recorded in a key.
func lossesOf(data []byte) (losses packed.Losses) {
	_ = packed.Sections(data, func(tag uint32, body []byte) error { // callers that read the rest report errors
		_, err := losses.Take(tag, body)
		return err
	})
	return losses
}

// newEntry converts tiles to times and values to texts.
func newEntry(s *state.Series, from *packed.Entry, columns []features.LogColumn) (e Entry, err error) {
	e = Entry{Key: from.Key, Member: from.Member, Registers: from.Registers, Hashes: from.Hashes, Bits: from.Bits}
	for _, tile := range from.Tiles {
		if !s.Measure.Layout().Exact() {
			if s.Tile == 0 {
				break // one tile forever
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
		e.Moments = &Moments{m.N, m.MeanOf(s.Type, s.Scale), m.Spread(s.Type, s.Scale, 1)}
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
		var v value.Value
		if _, err := from.Record.Column(columns[i].Column, &v); err != nil {
			return e, err
		}
		if columns[i].Type == value.Null {
			v = value.Value{Type: value.Bool, Num: 1}
		}
		e.Columns[columns[i].Name] = string(v.AppendText(nil))
	}
	return e, err
}
