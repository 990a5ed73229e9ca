package query

import (
	"fmt"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// Tables holds the rows of tables.
type Tables interface {
	// Find returns the row of a key at a moment, in milliseconds; nil for none. The key is the text of an entity. Where only
	// the newest row of a key is known, it is that, whenever it was written. It fails with an error that wraps
	// state.ErrUnavailable if the table cannot answer now.
	Find(t *features.Table, key string, at int64) (*features.Row, error)
}

// SetTables sets the tables that all following readings look rows up in, until the next call. Without tables, features that
// need one are Unavailable.
func (r *Reading) SetTables(t Tables) { r.tables = t }

// rowOf is a row that is looked up.
type rowOf struct {
	table *features.Table
	key   string
	at    int64 // milliseconds
}

// lookup is a row that was looked up, nil for none, or why it could not be.
type lookup struct {
	row *features.Row
	err error
}

// find looks the row of a key up, once in a reading.
func (r *Reading) find(t *features.Table, key string, at int64) lookup {
	of := rowOf{t, key, at}
	found, ok := r.rows[of]
	switch {
	case ok:
	case r.tables == nil:
		found.err = fmt.Errorf("table %s is not read here: %w", t.Name, state.ErrUnavailable)
	default:
		found.row, found.err = r.tables.Find(t, key, at)
	}
	r.rows[of] = found
	return found
}

// ahead is how much later than the present, in milliseconds, a row may be because clocks differ. The present of an event that
// is enriched long after it was written is the time of its record, and a row may be far later.
const ahead = 5 * 60 * 1000

// ofEvent answers whether there is a row whose key the event in hand has; with null if it has none.
func (r *Reading) ofEvent(a *Answer, f *frame, of *features.OfTable) {
	var found lookup
	known := isOf(r.inHand, f.InHand) && !r.inHand.Values[of.Event].IsNull()
	if known {
		found = r.find(of.Table, string(state.AppendEntity(nil, true, r.inHand.Values[of.Event])), f.at)
	}
	r.ofTable(a, f, of, found)
	if !known {
		a.Value = value.Value{}
	}
}

// ofTable answers with a field of a row, or whether there is a row.
func (r *Reading) ofTable(a *Answer, f *frame, of *features.OfTable, found lookup) {
	if found.err != nil {
		unread(a, f.Feature, found.err, f.at, r.now)
		return
	}
	*a = Answer{Status: NotFound, Exact: true, From: f.at, To: f.at, CompleteSince: state.MinTime, since: state.MinTime}
	exists := found.row != nil && of.Table.Holds(found.row, f.at)
	if of.Field == features.Exists {
		a.Value = expr.Truth(exists)
	}
	if found.row != nil {
		a.LaterEvents = found.row.Time > f.at && (f.at < r.present || found.row.Time > r.now+ahead)
	}
	switch {
	case !exists:
		return
	case of.Field == features.Exists:
		a.Status = Present
		return
	}
	a.Value, a.Status = found.row.Values[of.Field], Present
	if a.Value.IsNull() {
		a.Status = NullValue
	}
}
