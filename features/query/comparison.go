package query

import (
	"slices"

	"github.com/weir-stream/weir/features"
	"github.com/weir-stream/weir/features/aggregate"
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

// lacksEvent begins an answer that compares with the event in hand, or reports that there is none. It is not inlined: on a
// larger frame of its caller all exact answers took a fifth longer.
//
//go:noinline
func (r *Reading) lacksEvent(a *Answer, f *frame) bool {
	if f.compared.begin(f.Feature, r.inHand) {
		return false
	}
	a.noEvent(Covers(f.Feature, f.at, r.now))
	return true
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

// samplesOf appends the samples of the events that pass the feature's filter and compare.
func (c *comparison) samplesOf(f *features.Feature, dst []aggregate.Sample, events []state.LogRecord) (samples []aggregate.Sample, err error) {
	samples = slices.Grow(dst, len(events))
	columns := f.Columns
	columns.Filter = nil // it is asked before the event is compared, which takes longer
	for i := range events {
		r, takes := &events[i], true
		if filter := f.Columns.Filter; filter != nil {
			takes, err = r.Has(*filter)
		}
		if err == nil && takes {
			takes, err = c.holds(r)
		}
		var s aggregate.Sample
		if err == nil && takes {
			_, err = sampleOf(&s, &columns, r)
		}
		switch {
		case err != nil:
			return nil, err
		case takes:
			samples = append(samples, s)
		}
	}
	return samples, nil
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
