package features

import (
	"slices"
	"strings"
	"time"

	"github.com/weir-stream/weir/features/aggregate"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Derived is the basis of a feature that is an expression over the answers of its parts, which are other features and
// fields of tables, and over the event being scored. It has no state of its own: it reads what its parts read.
type Derived struct {
	Of   []*Feature // the parts, in the order in which Expr takes their values
	Expr *expr.Expr
	// Event is the stream of the event whose fields Expr reads; nil if it reads none.
	Event *record.Stream
	// Default replaces a null result of Expr.
	Default value.Value

	// keys holds for each part the indexes of its keys among the keys of the feature, both ordered by name.
	keys [][]int
}

// Parts returns the features that the expression names.
func (d *Derived) Parts() []*Feature { return d.Of }

func (d *Derived) valueType(*Feature) value.Type            { return d.Expr.Type() }
func (d *Derived) scale(*Feature) uint8                     { return max(d.Expr.Scale(), d.Default.Scale) }
func (d *Derived) shape(*Feature) aggregate.Shape           { return aggregate.Scalar }
func (d *Derived) membership(*Feature) aggregate.Membership { return aggregate.NoMembers }
func (d *Derived) forgets(*Feature) bool                    { return slices.ContainsFunc(d.Of, (*Feature).Forgets) }
func (d *Derived) askedAbout(*Feature, []value.Value)       {} // it has no Membership
func (d *Derived) retain(*Feature) []state.Retained         { return retainedBy(d.Of) }

func (d *Derived) meaning(f *Feature) string {
	var reads []string
	if f.InHand != nil {
		reads = append(reads, "the event of "+f.InHand.Name+" in hand, of which nothing is kept")
	}
	for _, part := range d.Of {
		if of, ok := part.Basis.(*OfTable); ok {
			reads = append(reads, of.meaning(part))
		}
	}
	if reads == nil {
		return ""
	}
	return "reads " + strings.Join(reads, ", and ")
}

func (d *Derived) fanOut() (n int) {
	for _, part := range d.Of {
		n += part.FanOut()
	}
	return n
}

func (d *Derived) key(_ *Feature, name string) (key record.Field) {
	for _, part := range d.Of {
		if !slices.Contains(part.By, name) {
			continue
		}
		if k := part.Key(name); key.Name == "" || k.Scale > key.Scale {
			key = k
		}
	}
	return key
}

// Combine sets the keys, the series, the Keep and the InHand of a feature with this basis from its parts. All that need an
// event need one of the same stream.
func (d *Derived) Combine(f *Feature) {
	f.Basis, f.InHand = d, d.Event
	var keeps []time.Duration
	for _, part := range d.Of {
		if f.InHand == nil {
			f.InHand = part.InHand
		}
		for i, by := range part.By {
			if !slices.Contains(f.By, by) {
				f.By, f.ByTypes = append(f.By, by), append(f.ByTypes, part.ByTypes[i])
			}
		}
		if part.Forgets() {
			keeps = append(keeps, part.Keep)
		}
		f.Series = append(f.Series, part.Series...)
	}
	if keeps != nil {
		f.Keep = slices.Min(keeps)
	}
	f.OrderBy()
	for _, part := range d.Of {
		var places []int
		for _, by := range part.By {
			places = append(places, slices.Index(f.By, by))
		}
		d.keys = append(d.keys, places)
	}
}

// PartEntity returns the entity text of a part, made from that of the feature.
func (d *Derived) PartEntity(f *Feature, part int, entity string) string {
	if slices.Equal(d.Of[part].By, f.By) {
		return entity
	}
	values := state.SplitEntity(nil, entity)
	var b strings.Builder
	for i, place := range d.keys[part] {
		if i > 0 {
			b.WriteByte('|')
		}
		if place < len(values) {
			b.WriteString(values[place])
		}
	}
	return b.String()
}
