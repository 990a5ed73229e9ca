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

// derive answers a derived feature from its parts.
func (r *Reading) derive(a *Answer, f *frame, of *features.Derived, c *Completeness) {
	if r.depth == len(r.derivations) {
		r.derivations = append(r.derivations, &derivation{expr: new(expr.Expr)})
	}
	d := r.derivations[r.depth]
	r.depth++ // a part may be derived, too
	parts := d.over(of.Expr, len(f.parts))
	from, to := int64(state.MaxTime), int64(state.MinTime)
	for i, part := range f.parts {
		r.answer(&parts[i], &r.frames[part], c.part(i))
		from, to = min(from, parts[i].From), max(to, parts[i].To)
	}
	r.depth--
	d.begin(a, from, to)
	for i := range parts {
		d.take(a, i, &parts[i])
	}
	d.end(a, f.Feature, of, r.inHand, f.at, r.now)
	d.release()
}

// derivation computes the answer of a derived feature from those of its parts. The value is found if any part's is, and
// null if the expression cannot be computed. If a part could not be read, or if a cap has left no value of it, there is
// none, not even the default: `a > 2 ? "many" : "few"` is few where a is null. Nor does the default stand for a result that is
// too large, or for one without the event that the expression, or that of a part, reads. The answer is complete if each part is.
type derivation struct {
	expr     *expr.Expr
	values   []value.Value
	elements []expr.Elements // of the parts that are not scalars; nil as long as none was
	whole    Answer          // as complete as all parts; nothing else of it is used
	lacks    bool            // a cap has left no value of a part
	parts    []Answer        // memory for their answers
}

func newDerivation(of *expr.Expr, parts int) *derivation {
	return &derivation{expr: of, values: make([]value.Value, parts)}
}

// over makes a derivation, which may have been one of another expression, compute this one, and returns memory for the answers of its
// parts.
func (d *derivation) over(of *expr.Expr, parts int) []Answer {
	of.CloneInto(d.expr)
	d.values, d.parts = slices.Grow(d.values[:0], parts)[:parts], slices.Grow(d.parts[:0], parts)[:parts]
	return d.parts
}

// release lets go of what the answers of the parts refer to.
func (d *derivation) release() {
	clear(d.parts)
	clear(d.values)
	d.elements = nil
}

// begin begins an answer that covers the event times of all parts together.
func (d *derivation) begin(a *Answer, from, to int64) {
	*a = Answer{Status: NotFound, Exact: true, CompleteSince: state.MinTime, From: from, To: to}
	d.lacks = false
	w := &d.whole
	w.Status, w.CompleteSince, w.From, w.To = NotFound, state.MinTime, from, to
	w.CompleteAt, w.Filling, w.Filled = 0, false, 0
}

// take adds the answer of a part.
func (d *derivation) take(a *Answer, part int, p *Answer) {
	d.values[part] = p.Value
	d.lacks = d.lacks || p.Capped && p.Value.IsNull() && p.Items == nil
	if p.Shape != aggregate.Scalar {
		if d.elements == nil {
			d.elements = make([]expr.Elements, len(d.values))
		}
		// Without events there is an empty list, and by category always one, unless its value was withheld.
		d.elements[part] = expr.Elements{Items: p.Items, Null: p.Items == nil && p.Shape == aggregate.Categories, Lacks: p.Capped}
	}
	d.whole.restOn(p)
	a.Exact = a.Exact && p.Exact
	a.StandardError = max(a.StandardError, p.StandardError)
	a.RelativeError = max(a.RelativeError, p.RelativeError)
	a.Uncertain = max(a.Uncertain, p.Uncertain)
	a.Capped = a.Capped || p.Capped
	a.LaterEvents = a.LaterEvents || p.LaterEvents
	switch {
	case a.Status.Unread():
	case p.Status.Unread():
		a.Status, a.Err = p.Status, p.Err
	case p.Status != NotFound:
		a.Status = Present
	}
}

func (d *derivation) end(a *Answer, f *features.Feature, of *features.Derived, event *record.Event, at, now int64) {
	switch {
	case a.Status.Unread():
		unread(a, f, a.Err, at, now)
		return
	case f.InHand != nil && !isOf(event, f.InHand):
		a.noEvent(a.From, a.To)
		return
	}
	if a.Value = (value.Value{}); !d.lacks {
		a.Value, _ = d.expr.EvalWith(d.values, d.elements, valuesOf(event)) // over features there are no errors
		switch {
		case d.expr.Beyond():
			a.Capped, a.Exact = true, false
		case a.Value.IsNull():
			a.Value = of.Default
		}
	}
	if a.Value.IsNull() && a.Status == Present {
		a.Status = NullValue
	}
	a.restOn(&d.whole)
	a.late()
}

// isOf reports whether there is an event, and of the stream.
func isOf(e *record.Event, s *record.Stream) bool { return e != nil && e.Stream.Name == s.Name }

// noEvent makes an answer that says that there is no event in hand.
func (a *Answer) noEvent(from, to int64) {
	*a = Answer{Status: NoEvent, From: from, To: to, CompleteSince: state.MinTime}
}

// valuesOf returns the values of an event's fields; none of no event.
func valuesOf(e *record.Event) []value.Value {
	if e == nil {
		return nil
	}
	return e.Values
}
