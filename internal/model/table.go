package model

import (
	"bytes"
	"errors"
	"net/netip"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// table holds the rows of a table in a topic that no later record has replaced or deleted.
type table struct {
	*features.Table
	decoder *record.Decoder
	rows    []row
	keys    map[string]bool // of all rows that ever were
}

// row is a row of a table.
type row struct {
	partition int32
	by        []byte // the key of its record; nil for none
	key       string // as the text of an entity
	time      int64
	values    []value.Value
}

// take takes a record of the topic. A bad one deletes a row as if it had no value.
func (t *table) take(rec *record.Record) error {
	events, err := t.decoder.Decode(rec)
	if _, bad := errors.AsType[*record.Poison](err); err != nil && !bad {
		return err
	}
	next := row{partition: rec.Partition.ID, by: bytes.Clone(rec.Key)}
	if err == nil && len(events) > 0 {
		next.time, next.values = events[0].Time, events[0].Clone().Values
		next.key = string(state.AppendEntity(nil, true, next.values[t.Key]))
	}
	if t.Networks && next.values != nil {
		network, err := features.ParseNetwork(next.key)
		if next.key = network.String(); err != nil {
			next.values = nil
		}
	}
	var others []row
	for _, r := range t.rows {
		replaced := r.partition == next.partition && bytes.Equal(r.by, next.by) && (r.by == nil) == (next.by == nil) && (r.by != nil || r.key == next.key)
		switch {
		case !replaced:
			others = append(others, r)
		case r.by == nil && r.time > next.time:
			return nil
		}
	}
	if t.rows = others; next.values == nil {
		return nil
	}
	t.keys[next.key] = true
	if t.Deletes < 0 || string(next.values[t.Deletes].Str) != "d" {
		t.rows = append(t.rows, next)
	}
	return nil
}

// newest returns the newest row of a key; nil for none.
func (t *table) newest(key string) (newest *row) {
	for i := range t.rows {
		r := &t.rows[i]
		if r.key == key && (newest == nil || r.time > newest.time || r.time == newest.time && r.partition >= newest.partition) {
			newest = r
		}
	}
	return newest
}

// holds reports whether there is a row, and it has not ended by a moment.
func (t *table) holds(r *row, at int64) bool {
	return r != nil && (t.Until < 0 || r.values[t.Until].IsNull() || r.values[t.Until].Num > at)
}

// find returns the row that counts for a key at a moment: of networks, that of the narrowest one that has not ended.
func (t *table) find(key string, at int64) *row {
	if !t.Networks {
		return t.newest(key)
	}
	var found *row
	bits := -1
	ip, err := netip.ParseAddr(key)
	for _, r := range t.rows {
		network := netip.MustParsePrefix(r.key)
		if newest := t.newest(r.key); err == nil && network.Contains(ip) && network.Bits() > bits && t.holds(newest, at) {
			found, bits = newest, network.Bits()
		}
	}
	return found
}

// ofTable answers with a field of a row, or whether there is a row.
func (m *Model) ofTable(of *features.OfTable, key string, at int64) (r aggregate.Result) {
	t := m.tables[of.Table]
	found := t.find(key, at)
	r.Found = t.holds(found, at)
	switch {
	case of.Field == features.Exists:
		r.Value = expr.Truth(r.Found)
	case r.Found:
		r.Value = found.values[of.Field]
	}
	return r
}

// keyOf returns the key of the row that a part looks up: that of its entity, or what the event in hand has; false for null.
func (m *Model) keyOf(part *features.Feature, of *features.OfTable, entity string) (key string, known bool) {
	if part.InHand == nil {
		return entity, true
	}
	if !m.has(part.InHand) || m.InHand.Values[of.Event].IsNull() {
		return "", false
	}
	return string(state.AppendEntity(nil, true, m.InHand.Values[of.Event])), true
}

// Younger reports whether a row that a feature reads is younger than the moment, in milliseconds, so that the row before is
// no longer known.
func (m *Model) Younger(f *features.Feature, entity string, at int64) bool {
	switch basis := f.Basis.(type) {
	case *features.OfTable:
		key, known := m.keyOf(f, basis, entity)
		row := m.tables[basis.Table].find(key, at)
		return known && row != nil && row.time > at
	case *features.Derived:
		if f.InHand != nil && !m.has(f.InHand) {
			return false // there is no answer
		}
		for _, part := range basis.Of {
			if m.Younger(part, m.derived[f.Name].entityOf(part, entity), at) {
				return true
			}
		}
	}
	return false
}
