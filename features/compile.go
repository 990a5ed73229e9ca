package features

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// The IDs of series and groups are hashes of texts with everything that the meaning of their state depends on. State
// outlives a release, so these texts must change only with their version; with a new version all state begins anew.

// Compiler makes the series that features need, and shares them.
type Compiler struct {
	// Hash makes the IDs of series and of their groups.
	Hash func(text string, length int) string

	series map[string]*state.Series // by identity
	times  map[*state.Series]int    // the greatest timesDefault of its features
	tiling map[string]state.Tiling  // see state.Plan
	ids    map[string]owner         // by a series' ID or a group's
	writes map[*record.Stream]map[string]*entityWrites
}

// owner is the identity that an ID is the hash of, and the first feature that uses it.
type owner struct{ identity, feature string }

// NewCompiler makes a compiler of one registry.
func NewCompiler() *Compiler {
	return &Compiler{
		Hash: hashID, series: map[string]*state.Series{}, times: map[*state.Series]int{}, tiling: map[string]state.Tiling{}, ids: map[string]owner{},
		writes: map[*record.Stream]map[string]*entityWrites{},
	}
}

// hashID returns the first characters of the text's SHA-256, in base64url.
func hashID(text string, length int) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

const (
	groupIDLength = 4
	contentLength = 12
)

// Inputs are the parts of an event that a feature reads.
type Inputs struct {
	Field, Per       int        // indexes, -1 for none
	Where, Condition *expr.Expr // nil for none; a filter that compares with the event in hand has its rest here
}

// Add gives a feature over a stream the series that it needs. It fails if two series have the same
// ID.
func (c *Compiler) Add(f *Feature, in Inputs) error {
	if f.Window.Exact {
		return c.addLog(f, in)
	}
	measures := f.Function.(aggregate.Mergeable).Measures(f.Call)
	for _, measure := range measures {
		s := &state.Series{
			Stream: f.Stream.Name, Where: f.Where, By: f.By,
			Measure: measure, Field: f.Field, Type: f.Call.Type, Scale: f.Call.Scale,
			Tile: f.Window.Tile.Milliseconds(), Per: f.Per,
		}
		if measure.Layout().Rated() {
			// The tiles of the window share the rate.
			s.Rate = f.Call.P / float64(f.Window.TileCount())
		}
		write := seriesWrite{where: in.Where, field: in.Field, per: in.Per}
		if keyed, ok := f.Function.(aggregate.Keyed); ok {
			keys := keyed.Keys(f.Call)
			s.Per, s.Keys = f.Field, keys.Name
			write.per, write.key = in.Field, keys.Append
		}
		if measure.OfCondition() {
			s.Condition, write.condition = f.Condition, in.Condition
		}
		if len(measures) > 1 {
			s.Quotient = cmp.Or(f.Condition, f.Field)
		}
		if measure.OfEvents() {
			s.Field, s.Type, s.Scale, write.field = "", value.Null, 0, -1
		}
		if measure.OfTimes() {
			s.Type = value.Timestamp
		}
		s, err := c.share(f, s, write)
		if err != nil {
			return err
		}
		f.Series = append(f.Series, s)
	}
	return nil
}

// addLog makes an exact feature read the log of its entity, and adds the columns that the feature needs.
func (c *Compiler) addLog(f *Feature, in Inputs) error {
	s, err := c.share(f, &state.Series{
		Stream: f.Stream.Name, By: f.By, Measure: state.Record, Tile: 1,
	}, seriesWrite{field: -1})
	if err != nil {
		return err
	}
	f.Series = append(f.Series, s)
	log := c.writes[f.Stream][strings.Join(s.By, "|")].logs[0]
	log.every = log.every || in.Where == nil || f.Window.ByEvents()
	val := func(field int) (column *state.Column) {
		if field >= 0 && err == nil {
			from := &f.Stream.Fields[field]
			column, err = c.column(f, log, logColumn{field: field}, from.Type, from.Scale,
				fmt.Sprintf("field %s\ntype %s %d\n", from.Name, from.Type, from.Scale)+derivation(from.Name, f.Stream))
		}
		return column
	}
	f.Columns.Field, f.Columns.Category = val(in.Field), val(in.Per)
	if f.Compared != nil {
		for _, field := range f.Compared.Fields {
			f.Compared.Columns = append(f.Compared.Columns, val(field))
		}
	}
	expression := func(e *expr.Expr, filters bool) (column *state.Column) {
		if e != nil && err == nil {
			column, err = c.column(f, log, logColumn{field: -1, where: e, filters: filters}, value.Null, 0,
				fmt.Sprintf("where %q\n", e.Text)+derivation(e.Text, f.Stream))
		}
		return column
	}
	f.Columns.Filter, f.Columns.Condition = expression(in.Where, true), expression(in.Condition, false)
	return err
}

// column finds or makes a column of a log. It fails if another column has the same tag by chance.
func (c *Compiler) column(f *Feature, log *logWrite, lc logColumn, t value.Type, scale uint8, identity string) (*state.Column, error) {
	sum := sha256.Sum256([]byte("column 1\n" + identity))
	lc.Column = state.NewColumn(binary.BigEndian.Uint32(sum[:]), t, scale)
	for i := range log.columns {
		switch have := &log.columns[i]; {
		case have.field == lc.field && have.where == lc.where:
			have.filters = have.filters || lc.filters
			return &have.Column, nil
		case have.Tag() == lc.Tag():
			return nil, fmt.Errorf("feature %q needs a column in the log of its entity that has the tag of another by chance; "+
				"write its filter in another way, or give its field another name", f.Name)
		}
	}
	log.columns = append(log.columns, lc)
	return &lc.Column, nil
}

// reach returns how far back the feature reads its series, in milliseconds; 0 means without bound.
func (f *Feature) reach() int64 {
	if !f.Window.Forgets() {
		return 0
	}
	return f.Window.Type.Reach().Milliseconds() + f.Window.Delay.Milliseconds() + f.Keep.Milliseconds()
}

// tilesMerge reports whether the feature's answer is the same from tiles of any width.
func (f *Feature) tilesMerge() bool { return f.Window.Tiled() && !f.Spec.TilesAreUnits }

// widestTile returns how wide tiles may be, in ms, from which the feature is answered until those of its definition are filled:
// no wider than its window. 0 means that there must be no others.
func (f *Feature) widestTile() int64 {
	switch {
	case f.Window.Exact:
		return 0
	case !f.Window.Forgets():
		return state.MaxTime
	case f.tilesMerge():
		return f.Window.Type.Reach().Milliseconds()
	}
	return 0
}

// share returns the existing series with the same identity, or this one, and extends what it keeps
// to what the feature needs.
func (c *Compiler) share(f *Feature, s *state.Series, write seriesWrite) (*state.Series, error) {
	s.Max = f.Call.Max
	if s.Measure.Layout().MaxOfTile() {
		s.Values = s.Max
		if s.Per == "" {
			s.Max = 0
		} else {
			s.Values = f.Spec.DefaultMax
		}
	}
	identity, group := c.name(s, f.Stream)
	if s.Tile == 0 || f.tilesMerge() {
		c.tiling[s.ID] = state.Tiling{Content: hashID("content 1\n"+seriesIdentity(s, f.Stream, "any"), contentLength), Width: s.Tile}
	}
	keep := f.reach()
	if first, ok := c.series[identity]; ok {
		c.times[first] = max(c.times[first], timesDefault(f, s))
		if keep == 0 || first.Keep == 0 {
			first.Keep = 0
		} else {
			first.Keep = max(first.Keep, keep)
		}
		first.Max, first.Values, first.Rate = max(first.Max, s.Max), max(first.Values, s.Values), min(first.Rate, s.Rate)
		return first, nil
	}
	if err := c.own(f, s, identity, group); err != nil {
		return nil, err
	}
	s.Keep = keep
	c.series[identity], c.times[s] = s, timesDefault(f, s)
	write.series = s
	return s, c.write(f, write)
}

// name sets the IDs of a series and its groups, and returns the texts that the IDs of the series and its group are
// hashes of.
func (c *Compiler) name(s *state.Series, stream *record.Stream) (identity, group string) {
	identity, group = seriesIdentity(s, stream, strconv.FormatInt(s.Tile, 10)), groupIdentity(s.By, stream)
	s.ID, s.Group = c.Hash(identity, state.SeriesIDLength), c.Hash(group, groupIDLength)
	if len(s.By) > 1 {
		s.Parent = c.Hash(groupIdentity(s.By[:1], stream), groupIDLength)
	}
	return identity, group
}

// own reserves the IDs of a series and its group. It fails if something else has one of them.
func (c *Compiler) own(f *Feature, s *state.Series, identity, group string) error {
	names := map[string]string{s.ID: identity, s.Group: group, fmt.Sprintf("%s %06x", s.Group, s.Tag()): identity}
	if s.Parent != "" {
		names[fmt.Sprintf("%s %06x", s.Parent, state.EmbeddingTag(s.Group))] = group
	}
	for id, text := range names {
		if first, ok := c.ids[id]; ok && first.identity != text {
			return fmt.Errorf("the state of feature %q and that of %q have the same id %s by chance; change one of them, such as by its tile or the name of a field",
				f.Name, first.feature, id)
		}
		c.ids[id] = owner{text, f.Name}
	}
	return nil
}

// write adds a series to those that events of the feature's stream write.
func (c *Compiler) write(f *Feature, w seriesWrite) error {
	entities := c.writes[f.Stream]
	if entities == nil {
		entities = map[string]*entityWrites{}
		c.writes[f.Stream] = entities
	}
	entity := strings.Join(w.series.By, "|")
	if entities[entity] == nil {
		entities[entity] = &entityWrites{}
		for _, by := range w.series.By {
			entities[entity].by = append(entities[entity].by, f.Stream.FieldIndex(by))
		}
		if f.Stream.RememberIDs > 0 {
			ids, err := c.remember(f, w.series.By)
			if err != nil {
				return err
			}
			entities[entity].ids = []*state.Series{ids}
		}
	}
	if w.series.Measure == state.Record {
		entities[entity].logs = []*logWrite{{series: w.series}}
		return nil
	}
	entities[entity].series = append(entities[entity].series, w)
	return nil
}

const (
	// idTile is the resolution of the time of an event ID, in milliseconds.
	idTile = 1000
	// maxIDs is how many event IDs an entity remembers.
	maxIDs = 1000
)

// remember makes the series of event IDs that the feature's stream keeps for an entity.
func (c *Compiler) remember(f *Feature, by []string) (*state.Series, error) {
	s := &state.Series{
		Stream: f.Stream.Name, By: by, Measure: state.RememberID, Tile: idTile, Keep: f.Stream.RememberIDs.Milliseconds(), Max: maxIDs,
	}
	identity, group := c.name(s, f.Stream)
	c.series[identity] = s
	return s, c.own(f, s, identity, group)
}

// Finish groups the series, and sets the registry's series and what its streams write, in an order
// that does not depend on the order of the definitions.
func (c *Compiler) Finish(r *Registry) {
	byID := func(a, b *state.Series) int { return cmp.Compare(a.ID, b.ID) }
	// Series that an event changes alike come one after the other: packed, they may share a body, see package state/packed.
	byBody := func(a, b *state.Series) int {
		return cmp.Or(cmp.Compare(a.Tile, b.Tile), cmp.Compare(a.Field, b.Field), byID(a, b))
	}
	r.Series = slices.SortedFunc(maps.Values(c.series), byID)
	r.writes = map[*record.Stream][]entityWrites{}
	for stream, entities := range c.writes {
		for _, key := range slices.Sorted(maps.Keys(entities)) {
			e := entities[key]
			slices.SortFunc(e.series, func(a, b seriesWrite) int { return byBody(a.series, b.series) })
			r.writes[stream] = append(r.writes[stream], *e)
		}
	}
	keepGroups(r.Series)
	boundSeries(r.Series, c.times)
	r.makePlan(c.tiling)
	r.makeVersion()
}

// keepGroups sets what follows from how long series are kept: for how long their groups are, and how many tiles they have.
func keepGroups(series []*state.Series) {
	keep := map[string]int64{} // of each group
	for _, s := range series {
		for _, group := range []string{s.Group, s.Parent} {
			switch longest, ok := keep[group]; {
			case s.Keep == 0:
				keep[group] = 0
			case !ok || longest > 0:
				keep[group] = max(longest, s.Keep+s.Tile)
			}
		}
	}
	for _, s := range series {
		s.GroupKeep = keep[s.Group]
		if s.Parent != "" {
			s.ParentKeep = keep[s.Parent]
		}
		s.Tiles = tilesKept(s)
	}
}

// tilesKept returns the greatest number of tiles that a tiled series holds of one entity: those from its horizon to the
// newest record.
func tilesKept(s *state.Series) int {
	if s.Tile == 0 {
		return 1
	}
	return int((s.Keep+s.Tile-1)/s.Tile) + 1
}

// seriesIdentity returns the text whose hash is the series' ID, given the width of its tiles. It includes the expressions of
// the derived fields that the series depends on.
func seriesIdentity(s *state.Series, stream *record.Stream, tile string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "series 1\nstream %s\nwhere %q\nby %s\nmeasure %s\nfield %s\ntype %s %d\ntile %s\n",
		s.Stream, s.Where, strings.Join(s.By, ","), s.Measure, s.Field, s.Type, s.Scale, tile)
	if s.Condition != "" {
		fmt.Fprintf(&b, "condition %q\n", s.Condition)
	}
	if s.Quotient != "" {
		fmt.Fprintf(&b, "quotient %q\n", s.Quotient)
	}
	if s.Measure == state.RememberID {
		b.WriteString(idPaths(stream))
	}
	if s.Per != "" {
		per := stream.Fields[stream.FieldIndex(s.Per)]
		fmt.Fprintf(&b, "per %s\ntype %s %d\nkeys %q\n", s.Per, per.Type, per.Scale, s.Keys)
	}
	return b.String() + derivation(strings.Join(slices.Concat(s.By, []string{s.Field, s.Where, s.Condition, s.Quotient, s.Per}), " "), stream)
}

// idPaths names where events have their IDs: an ID at another path is not the same, though it may have the same text. Like the
// identity, it depends on the topics only if they differ in that.
func idPaths(stream *record.Stream) string {
	var of, in []string
	for _, source := range stream.Sources() {
		of = append(of, fmt.Sprintf("id %q\n", source.ID))
		in = append(in, fmt.Sprintf("id %q in %s\n", source.ID, source.Topic))
	}
	if of = slices.Compact(of); len(of) == 1 {
		return of[0]
	}
	slices.Sort(in)
	return strings.Join(in, "")
}

// derivation lists the expressions of the derived fields that a text of names and expressions
// depends on.
func derivation(rests string, stream *record.Stream) string {
	var b strings.Builder
	for _, f := range slices.Backward(stream.Fields) {
		if f.Expr != nil && slices.Contains(identifier.FindAllString(rests, -1), f.Name) {
			fmt.Fprintf(&b, "derived %s %q\n", f.Name, f.Expr.Text)
			rests += " " + f.Expr.Text
		}
	}
	return b.String()
}

var identifier = regexp.MustCompile(`[A-Za-z_][A-Za-z0-9_]*`)

// groupIdentity returns the text whose hash is the group's name.
func groupIdentity(by []string, stream *record.Stream) string {
	var b strings.Builder
	b.WriteString("group 2\n")
	for _, by := range by {
		fmt.Fprintf(&b, "by %s %s\n", by, stream.Fields[stream.FieldIndex(by)].Type)
	}
	return b.String()
}
