package query

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/expr"
	"github.com/weir-stream/weir/features/record"
	"github.com/weir-stream/weir/state"
	"github.com/weir-stream/weir/value"
)

// comparison compares the events of logs with the event in hand, for the answers of one frame.
type comparison struct {
	expr    *expr.Expr
	columns []*state.Column
	values  []value.Value // of an event of a log, by column
	event   []value.Value // of the event in hand
	beyond  bool          // something was too large to be compared, so it is not known whether an event passes
}

func newComparison(of *features.Comparison) *comparison {
	return &comparison{expr: of.Expr.Clone(), columns: of.Columns, values: make([]value.Value, len(of.Columns))}
}

// begin begins an answer with an event in hand; false if there is none of the feature's stream. Its texts are taken as the
// log keeps them: a long one is equal to itself.
func (c *comparison) begin(f *features.Feature, event *record.Event) bool {
	if !isOf(event, f.InHand) {
		return false
	}
	c.event, c.beyond = event.Values, false
	cloned := false
	for _, i := range c.expr.OfEvent() {
		kept := f.InHand.Kept(i, c.event[i])
		if len(kept.Str) == len(c.event[i].Str) {
			continue
		}
		if !cloned {
			c.event, cloned = slices.Clone(c.event), true
		}
		c.event[i] = kept
	}
	return true
}

// holds reports whether the comparison is true of an event of the log. One that is unknown is not.
func (c *comparison) holds(r *state.LogRecord) (bool, error) {
	for i, column := range c.columns {
		if _, err := r.Column(*column, &c.values[i]); err != nil {
			return false, err
		}
	}
	holds := c.expr.TrueWith(c.values, c.event)
	c.beyond = c.beyond || c.expr.Beyond()
	return holds, nil
}
