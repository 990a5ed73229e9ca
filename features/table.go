package features

import (
	"fmt"
	"slices"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Table is a table of which derived features look up the newest row of a key.
type Table struct {
	Name string
	// Rows says how a row is read: the topic, or the file's name in its place, the format and the fields. It has a
	// Timestamp only if rows say since when they hold; else that is the time of their record.
	Rows *record.Stream
	File string // where the rows are, if they are in a file, or an object s3://BUCKET/KEY; empty for a topic
	// Written is File as the definitions write it: a path from their own folder, wherever that is.
	Written string
	Key     int // the field of the key
	// Deletes is the field whose text "d" says that the row is deleted; -1 if there is none. Expressions cannot name it.
	Deletes int
	// Until is the field of the moment from which on the row no longer counts; -1 if there is none.
	Until int
	List  bool // its rows are the entries of a list, which operators write
	// Networks means that its keys are networks, by which the row of an IP address is found: that of the narrowest one.
	Networks bool
	// MaxRows and MaxBytes are how many rows the table may have, and how much memory they may take.
	MaxRows  int
	MaxBytes int64
}

// NetworkType is the type of a list of networks in definitions.
const NetworkType = "network"

// KeyType returns the type of the keys, as definitions name it.
func (t *Table) KeyType() string {
	if t.Networks {
		return NetworkType
	}
	return t.Rows.Fields[t.Key].Type.String()
}

// Identity returns a text that is equal for tables with the same contents.
func (t *Table) Identity() string { return fmt.Sprintf("%s in %q", t.Meaning(), t.File) }

// Meaning returns a text that is equal for tables that are defined in the same way, in whichever folder.
func (t *Table) Meaning() string {
	s := t.Rows
	text := fmt.Sprintf("table %s %q %q %s %q %s %d %d %d", t.Name, s.Topic, t.Written, s.Format, s.Timestamp.Path, s.Timestamp.Form,
		t.Key, t.MaxRows, t.MaxBytes)
	if t.List {
		text += " list"
	}
	if t.Networks {
		text += " networks"
	}
	if s.Match != nil {
		text += fmt.Sprintf(" match %q", s.Match.Text)
	}
	for _, f := range s.Fields {
		text += " " + fieldVersion(&f)
	}
	return text
}

// Row is a row of a table.
type Row struct {
	Time   int64         // since when it holds, in milliseconds; record.NoTime if that is unknown
	Values []value.Value // by field of the table
}

// Holds reports whether the row counts at a moment, in milliseconds.
func (t *Table) Holds(r *Row, at int64) bool {
	return t.Until < 0 || r.Values[t.Until].IsNull() || r.Values[t.Until].Num > at
}

// OfTable is the basis of a part of a derived feature: a field of a table's row, or whether there is a row. The key of the row
// is the part's only one.
type OfTable struct {
	Table *Table
	Field int // or Exists
	// Event is the field that has the key, of an event in hand of the part's InHand. The part has no key then.
	Event int
}

// Exists is the Field of an OfTable that asks whether there is a row.
const Exists = -1

// NewOfTable makes the part with the name TABLE.FIELD, or KEY in TABLE. Its key has the given name in questions.
func NewOfTable(t *Table, field int, by string) *Feature {
	name := by + " in " + t.Name
	if field != Exists {
		name = t.Name + "." + t.Rows.Fields[field].Name
	}
	return &Feature{
		Name: name, By: []string{by}, ByTypes: []value.Type{t.Rows.Fields[t.Key].Type},
		Basis: &OfTable{Table: t, Field: field},
	}
}

// NewOfEvent makes the part event.FIELD in TABLE: whether there is a row whose key is what a field of the event in hand has.
func NewOfEvent(t *Table, s *record.Stream, field int) *Feature {
	name := expr.EventName + "." + s.Fields[field].Name + " in " + t.Name
	return &Feature{Name: name, InHand: s, Basis: &OfTable{Table: t, Field: Exists, Event: field}}
}

// Parts returns none.
func (*OfTable) Parts() []*Feature { return nil }

func (o *OfTable) valueType(*Feature) value.Type {
	if o.Field == Exists {
		return value.Bool
	}
	return o.Table.Rows.Fields[o.Field].Type
}

func (o *OfTable) scale(*Feature) uint8 {
	if o.Field == Exists {
		return 0
	}
	return o.Table.Rows.Fields[o.Field].Scale
}

func (o *OfTable) shape(*Feature) aggregate.Shape           { return aggregate.Scalar }
func (o *OfTable) membership(*Feature) aggregate.Membership { return aggregate.NoMembers }
func (o *OfTable) forgets(*Feature) bool                    { return false }
func (o *OfTable) fanOut() int                              { return 0 }
func (o *OfTable) askedAbout(*Feature, []value.Value)       {} // it has no Membership
func (o *OfTable) retain(*Feature) []state.Retained         { return nil }
func (o *OfTable) meaning(f *Feature) string {
	switch {
	case f.InHand != nil:
		return "whether its " + f.InHand.Fields[o.Event].Name + " is in " + o.Table.Name
	case o.Field == Exists:
		return "whether " + f.By[0] + " is in " + o.Table.Name
	}
	return o.Table.Rows.Fields[o.Field].Name + " of the row of table " + o.Table.Name + " for " + f.By[0]
}

func (o *OfTable) key(f *Feature, _ string) record.Field {
	key := o.Table.Rows.Fields[o.Table.Key]
	key.Name = f.By[0]
	return key
}

// Tables returns the tables that the feature or a part of it looks up, each once.
func (f *Feature) Tables() (list []*Table) {
	if of, ok := f.Basis.(*OfTable); ok {
		return []*Table{of.Table}
	}
	return TablesOf(f.Parts())
}

// TableTopics returns the topics in which the rows of tables are, sorted.
func TableTopics(tables []*Table) (topics []string) {
	for _, t := range tables {
		if t.File == "" {
			topics = append(topics, t.Rows.Topic)
		}
	}
	slices.Sort(topics)
	return slices.Compact(topics)
}

// TablesOf returns the tables that features look up, each once.
func TablesOf(all []*Feature) (list []*Table) {
	for _, f := range all {
		for _, t := range f.Tables() {
			if !slices.Contains(list, t) {
				list = append(list, t)
			}
		}
	}
	return list
}
